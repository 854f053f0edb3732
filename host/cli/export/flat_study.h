// A study as tables and flat lists, the input of most tools that keep experiments.
//
// Threading: pure functions. Errors: none.
#ifndef DSAT_CLI_EXPORT_FLAT_STUDY_H_
#define DSAT_CLI_EXPORT_FLAT_STUDY_H_

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dsat/config/json.h"
#include "dsat/host/facts.h"

namespace dsat::cli {

using config::Leaf;
using config::leaves_of;

// A text without its quotes, null as an empty text, any other value as JSON. The result is one line of valid UTF-8.
std::string leaf_text(const Json& leaf);

// The indices of the trials to export: they were started, are no duplicates, and are not the model-information run.
std::vector<size_t> exported_trials(const host::StudyFacts& facts);

// `name`, with the suffix _2, _3, ... if it is taken, and cut to at most `longest` bytes.
std::string unique_name(const std::string& name, std::set<std::string>& taken, size_t longest = std::string::npos);

// The time at which the trial was started. A host that was killed may not have recorded it; then the time of the
// request.
const std::string& start_of(const host::TrialRecord& trial);

// The keys that the search tuned: the leaves of all overrides, in the order of their first use.
std::vector<std::string> tuned_keys(const host::StudyFacts& facts);

// A trial's numbers: its metrics, and peak_bytes.
std::vector<std::pair<std::string, double>> numbers_of(const host::TrialRecord& trial);

// "completed", "out_of_memory", ...; "running" or "waiting" for a trial without an outcome.
std::string outcome_of(const host::StudyFacts& facts, size_t index);

// The study's name, or its folder's if it has none. Studies of the same script share a name.
std::string name_of(const host::StudyFacts& facts);
// The absolute path of the study's folder.
std::filesystem::path folder_of(const host::StudyFacts& facts);

}  // namespace dsat::cli

#endif  // DSAT_CLI_EXPORT_FLAT_STUDY_H_
