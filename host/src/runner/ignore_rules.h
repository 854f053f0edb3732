// .detignore: lists the files of a model directory that are not copied, in the syntax of .gitignore.
//
// One pattern a line; '#' begins a comment, '!' includes a path again, '/' at the end means folders only, '/' before
// the end ties the pattern to the model directory. `*`, `?` and `[...]` match within a name, `**` matches any folders.
// The last matching pattern decides. Threading: an IgnoreRules never changes.
#ifndef DSAT_HOST_RUNNER_IGNORE_RULES_H_
#define DSAT_HOST_RUNNER_IGNORE_RULES_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace dsat::host {

inline constexpr const char* kIgnoreFile = ".detignore";

class IgnoreRules {
 public:
  IgnoreRules() = default;  // ignores nothing
  explicit IgnoreRules(std::string_view text);

  // `path` is relative to the folder with the rules. Do not ask for paths inside an ignored folder.
  bool ignores(const std::filesystem::path& path, bool is_folder) const;

 private:
  struct Rule {
    std::vector<std::string> names;  // names of the path, from its top or, if not tied, its last names
    bool takes_in = false, folders_only = false;
  };
  std::vector<Rule> rules_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_IGNORE_RULES_H_
