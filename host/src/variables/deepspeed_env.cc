// The user's lines come first, in the order in which the launcher reads their files, since a later line overrides.
#include "variables/deepspeed_env.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "dsat/base/files.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;

// Whether the text has no character that a shell or pdsh replaces (pdsh replaces %h by the host).
bool is_plain(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_-./:,=+@").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

std::string lines_with_variables(const fs::path& file) {
  std::string text = try_read_file(file).bytes;
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text;
}

}  // namespace

std::string deepspeed_env(const Environment& variables, const Environment& caller, const fs::path& cwd) {
  const auto given = [&](const char* key, const char* otherwise) {
    const auto own = get_variable(variables, key);
    return own ? *own : get_variable(caller, key).value_or(otherwise);
  };
  const fs::path name = given(kDeepSpeedEnvVariable, ".deepspeed_env");
  const fs::path at_home = fs::path(given("HOME", "/")) / name, here = cwd / name;
  std::string text = lines_with_variables(at_home);
  if (here != at_home) text += lines_with_variables(here);
  for (const std::string& variable : variables) {
    if (is_plain(variable)) text += variable + "\n";
  }
  return text;
}

}  // namespace dsat::host
