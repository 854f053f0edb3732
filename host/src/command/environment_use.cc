// Looks for names, or for an import of the package dsat, in the arguments and in the scripts among them.
#include "command/environment_use.h"

#include <algorithm>
#include <string_view>

#include "dsat/base/files.h"

namespace dsat::host {

namespace {

constexpr size_t kLargestScript = size_t{4} << 20;

bool names_variable(std::string_view text) {
  if (text.find(kConfigVariable) != std::string_view::npos) return true;
  for (const std::string_view statement : {"import dsat", "from dsat"}) {
    for (size_t at = text.find(statement); at != std::string_view::npos; at = text.find(statement, at + 1)) {
      const size_t end = at + statement.size();
      const bool whole_word = end == text.size() || std::string_view(" .\n\r\t;,").find(text[end]) != text.npos;
      const bool begins = at == 0 || std::string_view(" \n\t;").find(text[at - 1]) != text.npos;
      if (whole_word && begins) return true;
    }
  }
  return false;
}

// Does the line that begins at `line` hold under a condition: below an "if" that is less indented, or behind && and ||?
bool is_conditional(std::string_view text, size_t line, size_t at) {
  const std::string_view before = text.substr(line, at - line);
  if (before.find("&&") != before.npos || before.find("||") != before.npos) return true;
  const size_t indentation = std::min(before.find_first_not_of(" \t"), before.size());
  while (line > 0) {
    const size_t end = line - 1;
    line = end == 0 ? 0 : text.rfind('\n', end - 1) + 1;  // npos + 1 is 0
    const std::string_view above = text.substr(line, end - line);
    const size_t depth = above.find_first_not_of(" \t");
    if (depth == above.npos || depth >= indentation) continue;
    const std::string_view words = above.substr(depth);
    return words.substr(0, 2) == "if" || words.substr(0, 2) == "el" || words.substr(0, 4) == "then";
  }
  return false;
}

// Where a line gives the variable a value of its own, in a shell's or in Python's way: X=2, environ["X"] = "2". One
// that is made of the variable itself, as X=${X:-2} is, does not count.
size_t assignment(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const size_t line = text.rfind('\n', at) + 1;  // npos + 1 is 0
    const size_t end = std::min(text.find('\n', at), text.size());
    const size_t first = text.find_first_not_of(" \t", line);
    const size_t equals = text.find_first_not_of("\"'] ", at + name.size());
    if (text[first] == '#' || is_conditional(text, line, at) || equals >= end || text[equals] != '=' ||
        text.substr(equals, 2) == "==")
      continue;
    const size_t value = text.find_first_not_of("\"' ", equals + 1);
    const bool hides_all = value >= end || text.substr(value, 2) == "-1";
    if (!hides_all && text.substr(equals, end - equals).find(name) == std::string_view::npos) return at;
  }
  return std::string_view::npos;
}

// DeepSpeed's own argument for the port, or the variable.
bool names_port(std::string_view text) {
  return text.find("distributed_port") != std::string_view::npos || reads_variable(text, "MASTER_PORT");
}

// A number of the script's own, and no look at whether there is one already.
bool fixes_port(std::string_view text) {
  constexpr std::string_view kName = "MASTER_PORT";
  const size_t at = assignment(text, kName);
  if (at == std::string_view::npos) return false;
  const size_t value = text.find_first_not_of("\"' ", text.find('=', at) + 1);
  const bool is_number = value != std::string_view::npos && text[value] >= '0' && text[value] <= '9';
  for (size_t use = text.find(kName); use != std::string_view::npos; use = text.find(kName, use + 1)) {
    if (text.substr(use, kName.size() + 10).find("not in") != std::string_view::npos) return false;
  }
  return is_number;
}

bool sets_visible_devices(std::string_view text) {
  return assignment(text, "CUDA_VISIBLE_DEVICES") != std::string_view::npos;
}

using Test = bool (*)(std::string_view text);

bool holds_of_file(Test test, const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return false;
  const FileText text = try_read_file(file, kLargestScript);
  return text.ok() && test(text.bytes);
}

// package.train of `python -m package.train`
std::string module_file(std::string module) {
  std::replace(module.begin(), module.end(), '.', '/');
  return module + ".py";
}

bool holds_of_a_script(Test test, const Argv& command, const std::filesystem::path& cwd) {
  for (size_t i = 0; i < command.size(); ++i) {
    if (command[i].empty()) continue;
    if (holds_of_file(test, cwd / command[i])) return true;
    if (i > 0 && command[i - 1] == "-m" && holds_of_file(test, cwd / module_file(command[i]))) return true;
  }
  return false;
}

}  // namespace

bool reads_variable(std::string_view text, std::string_view name) {
  return text.find(name) != std::string_view::npos && assignment(text, name) == std::string_view::npos;
}

bool script_sets_visible_devices(const Argv& command, const std::filesystem::path& cwd) {
  return holds_of_a_script(sets_visible_devices, command, cwd);
}

bool script_fixes_port(const Argv& command, const std::filesystem::path& cwd) {
  return holds_of_a_script(fixes_port, command, cwd);
}

bool reads_config_variable(const Argv& command, const std::filesystem::path& cwd) {
  return std::any_of(command.begin(), command.end(), names_variable) || holds_of_a_script(names_variable, command, cwd);
}

bool sets_port(const Argv& command, const std::filesystem::path& cwd) {
  return holds_of_a_script(names_port, command, cwd);
}

}  // namespace dsat::host
