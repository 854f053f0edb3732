// Looks for names, or for an import of the package dsat, in the arguments and in the scripts that they name.
#include "command/environment_use.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>

#include "command/launchers.h"
#include "dsat/base/affix.h"
#include "dsat/base/files.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"

namespace dsat::host {

namespace {

constexpr size_t kLargestScript = size_t{4} << 20;

bool names_configuration(std::string_view text) {
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

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }
bool is_name_letter(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

// `if __name__ == "__main__":` is true whenever the script is run.
bool is_main_guard(std::string_view words) {
  return starts_with(words, "if") && has(words, "__name__") && !has(words, " and ") && !has(words, " or ");
}

bool is_condition(std::string_view words) {
  return (starts_with(words, "if") && !is_main_guard(words)) || starts_with(words, "el") || starts_with(words, "then");
}

std::string_view without_indentation(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
}

// Whether a shell command normally succeeds, so that a command after it and && runs.
bool is_preparation(std::string_view command) {
  return starts_with(command, "cd ") || starts_with(command, "export ") || starts_with(command, "source ") ||
         starts_with(command, ". ") || starts_with(command, "set ") || starts_with(command, "module ");
}

// Whether the words before an assignment in its line make it conditional. `cd x && X=2` is not conditional.
bool is_behind_condition(std::string_view before) {
  const bool is_in_braces = before.rfind('{') != before.npos && before.find('}', before.rfind('{')) == before.npos;
  std::string_view command = is_in_braces ? before : before.substr(before.rfind(';') + 1);  // npos + 1 is 0
  if (is_condition(without_indentation(command)) || has(command, "||")) return true;
  for (size_t end = command.find("&&"); end != command.npos; end = command.find("&&")) {
    if (!is_preparation(without_indentation(command.substr(0, end)))) return true;
    command = command.substr(end + 2);
  }
  return false;
}

// Whether the line at `line` is conditional: below an "if" with less indentation, or after one in the same line.
bool is_conditional(std::string_view text, size_t line, size_t at) {
  const std::string_view before = text.substr(line, at - line);
  if (is_behind_condition(before)) return true;
  size_t indentation = std::min(before.find_first_not_of(" \t"), before.size());
  while (line > 0) {
    const size_t end = line - 1;
    line = end == 0 ? 0 : text.rfind('\n', end - 1) + 1;
    const std::string_view above = text.substr(line, end - line);
    const size_t depth = above.find_first_not_of(" \t");
    if (depth == above.npos || depth >= indentation) continue;
    const std::string_view words = above.substr(depth);
    if (is_condition(words)) return true;
    if (!is_main_guard(words)) return false;
    indentation = depth;
  }
  return false;
}

// Returns the value that a shell assigns to the variable named at `at`, X=2; nullopt: none.
std::optional<std::string_view> shell_value(std::string_view text, size_t at, size_t name_size) {
  const size_t equals = at + name_size;
  const bool is_whole = at == 0 || !(is_name_letter(text[at - 1]) || has("${", text.substr(at - 1, 1)));
  if (!is_whole || equals >= text.size() || text[equals] != '=' || text.substr(equals, 2) == "==") return std::nullopt;
  std::string_view value = text.substr(equals + 1, text.find('\n', equals) - equals - 1);
  if (!value.empty() && (value[0] == '"' || value[0] == '\'')) {
    return value.substr(1, std::min(value.find(value[0], 1), value.size()) - 1);
  }
  const bool is_command = starts_with(value, "$(") || starts_with(value, "`");
  return is_command ? value : value.substr(0, value.find_first_of(" \t;&|\"'"));
}

// Whether the text at `at` is an argument of a call on the environment: environ.update(X="2"), dict(os.environ, X="2").
bool is_entry_of_environment(std::string_view text, size_t at) {
  constexpr std::string_view kEnviron = "environ";
  constexpr size_t kFarthest = 400;
  const size_t found = text.substr(0, at).rfind(kEnviron);
  if (found == text.npos || at - found > kFarthest) return false;
  const std::string_view between = text.substr(found + kEnviron.size(), at - found - kEnviron.size());
  return (starts_with(between, ",") || starts_with(between, ".update(")) && !has(between, ")");
}

// Whether the text at `at` begins a string that Python passes to a shell: subprocess.run("X=2 command", shell=True).
bool is_in_shell_call(std::string_view text, size_t at) {
  if (at == 0 || (text[at - 1] != '"' && text[at - 1] != '\'')) return false;
  const size_t line = text.rfind('\n', at) + 1;
  const std::string_view before = text.substr(line, at - line);
  return has(before, "run(") || has(before, "call(") || has(before, "Popen(") || has(before, "system(") ||
         has(before, "output(");
}

// Whether the words end with the name of an environment, os.environ or a copy such as env, and a bracket.
bool ends_in_environment(std::string_view before) {
  if (before.empty() || before.back() != '[') return false;
  size_t begin = before.size() - 1;
  while (begin > 0 && is_name_letter(before[begin - 1])) --begin;
  std::string name(before.substr(begin, before.size() - 1 - begin));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return has(name, "env");
}

// Returns the value that Python assigns: environ["X"] = "2", putenv("X", "2"), environ.update(X="2"). A quoted line,
// such as the usage in a docstring, assigns nothing.
std::optional<std::string_view> python_value(std::string_view text, size_t at, size_t name_size) {
  const auto skip_blanks = [&](size_t i) { return std::min(text.find_first_not_of(" \t", i), text.size()); };
  const bool is_quoted = at > 0 && (text[at - 1] == '"' || text[at - 1] == '\'') && at + name_size < text.size() &&
                         text[at + name_size] == text[at - 1];
  const std::string_view before = text.substr(0, is_quoted ? at - 1 : at);
  size_t i = skip_blanks(at + name_size + (is_quoted ? 1 : 0));
  if (is_quoted && ends_in_environment(before)) {
    i = i < text.size() && text[i] == ']' ? skip_blanks(i + 1) : text.size();
  } else if (is_quoted && before.size() > 7 && before.substr(before.size() - 7) == "putenv(") {
    i = i < text.size() && text[i] == ',' ? i : text.size();
  } else if (is_in_shell_call(text, at)) {
    return shell_value(text, at, name_size);
  } else if (!is_entry_of_environment(text, at)) {
    return std::nullopt;
  }
  if (i >= text.size() || !has("=:,", text.substr(i, 1)) || text.substr(i, 2) == "==") return std::nullopt;
  const std::string_view value = text.substr(i + 1, text.find('\n', i) - i - 1);
  return value.substr(std::min(value.find_first_not_of("\"' "), value.size()));
}

// Returns the value that a text assigns to the variable. A value made from the variable itself, as in X=${X:-2}, does
// not count, nor does one that hides all devices.
std::optional<std::string_view> assignment(std::string_view text, std::string_view name, Language language) {
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const size_t line = text.rfind('\n', at) + 1;
    if (text[text.find_first_not_of(" \t", line)] == '#' || is_conditional(text, line, at)) continue;
    std::optional<std::string_view> value;
    if (language != Language::shell) value = python_value(text, at, name.size());
    if (!value && language != Language::python) value = shell_value(text, at, name.size());
    if (!value || value->empty() || has(")}#", value->substr(0, 1))) continue;
    if (!starts_with(*value, "-1") && !has(*value, name)) return value;
  }
  return std::nullopt;
}

// In Python, NAME=value is not a use of a variable but text for people.
bool mentions(std::string_view text, std::string_view name, Language language) {
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    if (language != Language::python || text.substr(at + name.size(), 1) != "=") return true;
  }
  return false;
}

bool reads(std::string_view text, std::string_view name, Language language) {
  return mentions(text, name, language) && !assignment(text, name, language);
}

// Whether the text has DeepSpeed's argument for the port, or the variable.
bool names_port(std::string_view text, Language language) {
  return has(text, "distributed_port") || reads(text, "MASTER_PORT", language);
}

// Whether the text sets a fixed number without reading the variable.
bool fixes_port(std::string_view text, Language language) {
  constexpr std::string_view kName = "MASTER_PORT";
  const auto value = assignment(text, kName, language);
  if (language == Language::other || !value || std::isdigit(static_cast<unsigned char>((*value)[0])) == 0) return false;
  for (size_t use = text.find(kName); use != std::string_view::npos; use = text.find(kName, use + 1)) {
    if (has(text.substr(use, kName.size() + 10), "not in")) return false;
  }
  return true;
}

bool sets_visible_devices(std::string_view text, Language language) {
  return sets_variable(text, "CUDA_VISIBLE_DEVICES", language);
}

using Test = bool (*)(std::string_view text, Language language);

bool holds_of_file(Test test, const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return false;
  const FileText text = try_read_file(file, kLargestScript);
  return text.ok() && test(text.bytes, language_of(file, text.bytes));
}

// Returns package/train.py for package.train of `python -m package.train`.
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

bool is_assignment(const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0 || std::isdigit(static_cast<unsigned char>(word[0])) != 0)
    return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), is_name_letter);
}

Argv with_env(Argv command) {
  if (!command.empty() && is_assignment(command[0])) command.insert(command.begin(), "env");
  return command;
}

std::vector<FlagUse> config_variables(const Argv& command) {
  std::vector<FlagUse> uses;
  for (size_t i = 0; i < command.size() && !is_python_script(command[i]); ++i) {
    for (const std::string_view name : {kLightningVariable, kAccelerateVariable}) {
      const bool sets = is_assignment(command[i]) && command[i].substr(0, command[i].find('=')) == name;
      if (sets) uses.push_back({i, i, name.size() + 1});
    }
  }
  return uses;
}

Json as_script_takes_it(const Argv& command, Json config) {
  for (const FlagUse& use : config_variables(command)) {
    if (starts_with(command[use.flag], kLightningVariable)) config::erase(config, config::kAccumulationKey);
  }
  return config;
}

bool reads_variable(std::string_view text, std::string_view name) { return reads(text, name, Language::shell); }

bool sets_variable(std::string_view text, std::string_view name, Language language) {
  return language != Language::other && assignment(text, name, language).has_value();
}

Language language_of(const std::filesystem::path& file, std::string_view text) {
  const std::filesystem::path ending = file.extension();
  if (ending == ".py") return Language::python;
  if (ending == ".sh" || ending == ".bash") return Language::shell;
  const std::string_view first = text.substr(0, text.find('\n'));
  const bool is_text = ending.empty() && !has(first, std::string_view("\0", 1));
  if (!starts_with(first, "#!")) return is_text ? Language::either : Language::other;
  if (has(first, "python")) return Language::python;
  return has(first, "sh") ? Language::shell : Language::other;
}

bool script_sets_visible_devices(const Argv& command, const std::filesystem::path& cwd) {
  return holds_of_a_script(sets_visible_devices, command, cwd);
}

bool script_fixes_port(const Argv& command, const std::filesystem::path& cwd) {
  return holds_of_a_script(fixes_port, command, cwd);
}

bool reads_config_variable(const Argv& command, const std::filesystem::path& cwd) {
  const Test in_script = [](std::string_view text, Language /*any*/) { return names_configuration(text); };
  return std::any_of(command.begin(), command.end(), names_configuration) || holds_of_a_script(in_script, command, cwd);
}

bool sets_port(const Argv& command, const std::filesystem::path& cwd) {
  return holds_of_a_script(names_port, command, cwd);
}

}  // namespace dsat::host
