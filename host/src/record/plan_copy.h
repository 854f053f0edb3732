// dsat.plan.json: a copy of the journal's rows without which a study cannot be resumed.
//
// Trials can be measured again and events taken back, but nothing else can replace the plan. The copy is written when a
// study begins or is resumed, and read only by a repair. Threading: control thread. Errors: keep throws dsat::Error; an
// unreadable copy counts as none.
#ifndef DSAT_HOST_RECORD_PLAN_COPY_H_
#define DSAT_HOST_RECORD_PLAN_COPY_H_

#include <filesystem>
#include <map>
#include <string>

#include "record/journal.h"

namespace dsat::host {

inline constexpr const char* kPlanCopyFile = "dsat.plan.json";

// Writes the journal's rows, synced, readable only for the owner; does nothing if the copy is up to date.
void keep_plan_copy(const std::filesystem::path& dir, Journal& journal);

// Returns the rows by their names in meta; empty: there is no readable copy.
std::map<std::string, Json> read_plan_copy(const std::filesystem::path& dir);

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_PLAN_COPY_H_
