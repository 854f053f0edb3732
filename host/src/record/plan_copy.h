// dsat.plan.json: the rows of the journal without which no study can be taken up, once more beside it.
//
// Purpose: the plan is one row of the journal, and the only one that nothing else can replace: trials can be measured
//   again and events taken back. Written when a study begins and when it is taken up; read by a repair alone.
// Threading: control thread. Errors: keep throws dsat::Error; a copy that cannot be read is none.
#ifndef DSAT_HOST_RECORD_PLAN_COPY_H_
#define DSAT_HOST_RECORD_PLAN_COPY_H_

#include <filesystem>
#include <map>
#include <string>

#include "record/journal.h"

namespace dsat::host {

inline constexpr const char* kPlanCopyFile = "dsat.plan.json";

// Writes what the journal has now, synced, for its owner's eyes only; nothing, if the copy says so already.
void keep_plan_copy(const std::filesystem::path& dir, Journal& journal);

// By the names of the rows of meta; empty: there is none that can be read.
std::map<std::string, Json> read_plan_copy(const std::filesystem::path& dir);

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_PLAN_COPY_H_
