// .detignore: what of a model directory is not copied, in the syntax of .gitignore.
//
// One pattern a line; '#' begins a comment, '!' takes a path in again, a '/' at the end means folders only, one before
// it ties the pattern to the model directory. `*`, `?` and `[...]` stay within a name, `**` stands for any folders. The
// last pattern that matches holds. Threading: an IgnoreRules never changes.
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

  // `path` is relative to the folder that the rules are of. What lies in an ignored folder is not asked for.
  bool ignores(const std::filesystem::path& path, bool is_folder) const;

 private:
  struct Rule {
    std::vector<std::string> names;  // of the path, from the top or, not tied, of its end
    bool takes_in = false, folders_only = false;
  };
  std::vector<Rule> rules_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_IGNORE_RULES_H_
