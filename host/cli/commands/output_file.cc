// Compares resolved paths, because a link or ".." may lead to the study's files.
#include "commands/output_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "deepspeed/study_file.h"
#include "dsat/base/files.h"
#include "dsat/error.h"
#include "export/files.h"

namespace dsat::cli {

namespace fs = std::filesystem;

namespace {

// weakly_canonical() alone leaves the relative path of a missing file relative.
fs::path resolved(const fs::path& path) {
  std::error_code error;
  return fs::weakly_canonical(fs::absolute(path, error), error);
}

}  // namespace

void refuse_files_of_the_study(const fs::path& dir, const fs::path& target, bool takes_page) {
  const fs::path within = resolved(target).lexically_relative(resolved(dir));
  if (within.empty() || *within.begin() == "..") return;
  constexpr const char* kPage = "report.html";
  if (takes_page && within == kPage) return;
  constexpr std::array kOwn{"dsat.lock", "dsat.plan.json", "experiment.json", kDeepspeedStudyFile, "summary.txt",
                            kPage,       "trials",         "probe",           "full_experiment"};
  const std::string first = within.begin()->string();
  // The journal with its logs and copies, and the files of the best configuration.
  const bool is_named_so = first.rfind("dsat.db", 0) == 0 || first.rfind("best_", 0) == 0;
  if (within == "." || is_named_so || std::find(kOwn.begin(), kOwn.end(), first) != kOwn.end()) {
    throw Error(fmt::format("-o {}: this is a file of the study itself: give another path", target.string()));
  }
}

void write_output(const fs::path& target, std::string_view text, Access access) {
  refuse_links_of_others(target);
  std::error_code error;
  const fs::file_status status = fs::status(target, error);
  if (fs::is_directory(status)) throw Error(fmt::format("-o {}: is a folder: name a file", target.string()));
  if (fs::exists(status) && !fs::is_regular_file(status)) return write_into(target, text);
  const fs::path behind = fs::is_symlink(target, error) ? fs::weakly_canonical(target, error) : target;
  write_file_atomically(error ? target : behind, text, Durability::renamed, access);
}

}  // namespace dsat::cli
