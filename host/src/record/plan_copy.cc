// The file is a JSON object with a key per row. A new copy replaces it by a rename, so a crash leaves the old or the
// new one.
#include "record/plan_copy.h"

#include "dsat/base/files.h"
#include "dsat/config/json.h"

namespace dsat::host {

namespace {

constexpr const char* kRows[] = {"plan", "settings", "max_trials", "searches"};
constexpr size_t kMostBytes = size_t{64} << 20;  // a plan may contain an experiment file

}  // namespace

void keep_plan_copy(const std::filesystem::path& dir, Journal& journal) {
  Json rows = Json::object();
  for (const char* key : kRows) {
    if (auto row = journal.meta(key)) rows[key] = std::move(*row);
  }
  const std::string text = config::text_of(rows) + "\n";
  const std::filesystem::path file = dir / kPlanCopyFile;
  if (try_read_file(file, kMostBytes).bytes == text) return;
  write_file_atomically(file, text, Durability::synced, Access::owner);
}

std::map<std::string, Json> read_plan_copy(const std::filesystem::path& dir) {
  const FileText text = try_read_file(dir / kPlanCopyFile, kMostBytes);
  const Json rows = text.ok() ? Json::parse(text.bytes, nullptr, false) : Json();
  std::map<std::string, Json> found;
  if (!rows.is_object()) return found;
  for (const char* key : kRows) {
    if (rows.contains(key)) found[key] = rows[key];
  }
  return found;
}

}  // namespace dsat::host
