// Makes a file beside the future run directory, and lets every node look for it. A local folder of the same name does
// not have this file.
#include "slurm/shared_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "dsat/base/utf8.h"
#include "dsat/error.h"
#include "slurm/slurm_tools.h"

namespace dsat::host {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience{30};

// A file that is removed with this object; its name is empty if no file could be made.
class Mark {
 public:
  explicit Mark(fs::path folder) {
    std::error_code error;
    while (!fs::is_directory(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
    name_ = (folder / ".dsat-shared-XXXXXX").string();
    const int fd = mkstemp(name_.data());
    if (fd < 0) name_.clear();
    if (fd >= 0) close(fd);
  }
  ~Mark() { unlink(name_.c_str()); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

// Prints a line for each folder that a node does not see: "run n1", "cwd n1".
constexpr const char* kLook =
    R"sh([ -e "$1" ] || echo "run $SLURMD_NODENAME"; [ -d "$2" ] || echo "cwd $SLURMD_NODENAME")sh";

// Returns "node n1", "nodes n1, n2"; of many nodes only the first few.
std::string node_list(std::vector<std::string> names) {
  constexpr size_t kShown = 4;
  std::sort(names.begin(), names.end());
  const size_t others = names.size() - std::min(names.size(), kShown);
  names.resize(names.size() - others);
  const std::string list = fmt::format("node{} {}", names.size() > 1 ? "s" : "", fmt::join(names, ", "));
  return others == 0 ? list : fmt::format("{} and {} others", list, others);
}

}  // namespace

void check_shared(const Allocation& allocation, const fs::path& run_dir, const fs::path& cwd,
                  const Environment& environment) {
  const Mark mark(run_dir.parent_path());
  if (mark.name().empty()) return;  // the maker of the run directory reports why
  const auto nodes = allocation.nodes.size();
  const ToolOutput output =
      SlurmTools::run_now({"srun", "--jobid=" + allocation.job, fmt::format("--nodes={}", nodes),
                           fmt::format("--ntasks={}", nodes), "--ntasks-per-node=1", "--overlap", "--mem=0",
                           "--mpi=none", "--chdir=/", "sh", "-c", kLook, "sh", mark.name(), cwd.string()},
                          without_slurm_variables(environment), kPatience);
  std::vector<std::string> blind, lost;
  for (const std::string& line : printable_lines(output.out)) {
    if (line.rfind("run ", 0) == 0) blind.push_back(line.substr(4));
    if (line.rfind("cwd ", 0) == 0) lost.push_back(line.substr(4));
  }
  const auto refuse = [](const char* what, const fs::path& folder, const std::vector<std::string>& names) {
    throw Error(
        fmt::format("{} {} is not the same on {} of the allocation: it must be on a file system that all nodes see",
                    what, folder.string(), node_list(names)));
  };
  if (!blind.empty()) refuse("--output-dir", run_dir, blind);
  if (!lost.empty()) refuse("the command's folder", cwd, lost);
}

}  // namespace dsat::host
