// The end of a study: its result, the last rows of its journal, and the explanation of a missing best.
//
// Threading: control thread. Errors: none.
#ifndef DSAT_HOST_STUDY_TURN_CONCLUSION_H_
#define DSAT_HOST_STUDY_TURN_CONCLUSION_H_

#include <filesystem>
#include <string>
#include <vector>

#include "dsat/host/study.h"
#include "record/journal.h"
#include "study/state/study_state.h"

namespace dsat::host {

// A study that completed without a best ends as `no_best`, with the reason.
void explain_missing_best(StudyState& state);

// The result of a study that ends.
StudyResult result_of(const StudyState& state);

// Writes gain, status and reason.
void write_ending(const StudyResult& result, Journal& journal);

// Merges the journal's log into its file, after the last commit. A log that stays is no loss.
void merge_log(Journal& journal, Observer& observer);

// The last lines that the last unsuccessful trial printed, below a line that names its file; empty: there are none.
std::vector<std::string> last_lines_of_failure(const std::vector<Trial>& trials, const std::filesystem::path& dir);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_TURN_CONCLUSION_H_
