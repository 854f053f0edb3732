// A study as tables and flat lists: what most tools that keep experiments take.
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

// A text without its quotes, null as nothing, anything else as JSON. Always one line of valid UTF-8.
std::string leaf_text(const Json& leaf);

// The trials that measured or tried something: started, no duplicates, not the model-information run. Their indices.
std::vector<size_t> exported_trials(const host::StudyFacts& facts);

// `name`, or where that is taken already `name` with _2, _3 and so on; cut so that it has at most `longest` bytes.
std::string unique_name(const std::string& name, std::set<std::string>& taken, size_t longest = std::string::npos);

// When it began. A host that was killed may have left no such moment: then when the trial was asked for.
const std::string& start_of(const host::TrialRecord& trial);

// What the search tuned: the leaves of all overrides, in the order in which they came up.
std::vector<std::string> tuned_keys(const host::StudyFacts& facts);

// A trial's numbers: its metrics, and peak_bytes.
std::vector<std::pair<std::string, double>> numbers_of(const host::TrialRecord& trial);

// "completed", "out_of_memory", ...; "running" or "waiting" for one without an outcome.
std::string outcome_of(const host::StudyFacts& facts, size_t index);

// The study's name: its own, else its folder's. Studies of one script share it.
std::string name_of(const host::StudyFacts& facts);
// Its folder, absolute.
std::filesystem::path folder_of(const host::StudyFacts& facts);

}  // namespace dsat::cli

#endif  // DSAT_CLI_EXPORT_FLAT_STUDY_H_
