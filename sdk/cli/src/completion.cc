// Writes one function for each shell: the sub-command decides which options there are, an option decides which values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "dsat/cli/manual.h"
#include "dsat/error.h"

namespace dsat::cli_kit {
namespace {

std::string identifier(const std::string& program) {
  std::string name = program;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string in_single_quotes(const std::string& text, const std::string& quote) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? quote : std::string(1, c);
  return result + "'";
}

bool takes_file(const Option& option) {
  const std::string& name = option.value_name;
  return option.kind == ValueKind::path || option.takes == Takes::config_file ||
         name.find("FILE") != std::string::npos || name.find("PATH") != std::string::npos;
}

bool takes_folder(const Option& option) { return option.value_name.find("DIR") != std::string::npos; }

std::vector<std::string> sub_command_words(const Manual& manual) {
  std::vector<std::string> words;
  for (const ManualCommand& command : manual.commands) {
    if (!command.word.empty()) words.push_back(command.word);
  }
  return words;
}

std::vector<std::string> spellings(const OptionSet& set) {
  std::vector<std::string> words;
  for (const Option& option : set.options()) {
    if (!option.hidden) words.push_back("--" + option.name);
  }
  return words;
}

// --- bash

const char* bash_operand(const ManualCommand& command) {
  switch (command.operand) {
    case Operand::folder:
      return "COMPREPLY=($(compgen -d -- \"$cur\"))";
    case Operand::file:
      return "COMPREPLY=($(compgen -f -- \"$cur\"))";
    case Operand::command:
      return "COMPREPLY=($(compgen -c -- \"$cur\"))";
    default:
      return ":";
  }
}

std::string bash_value(const Option& option) {
  if (!option.words.empty()) {
    return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$cur\"))", fmt::join(option.words, " "));
  }
  if (takes_folder(option)) return "COMPREPLY=($(compgen -d -- \"$cur\"))";
  return takes_file(option) ? "COMPREPLY=($(compgen -f -- \"$cur\"))" : ":";
}

std::string bash_case(const ManualCommand& command) {
  std::string text = fmt::format("    {})\n      case \"$prev\" in\n", command.word.empty() ? "''" : command.word);
  for (const Option& option : command.options.options()) {
    if (option.hidden || option.takes == Takes::nothing || option.takes == Takes::attached) continue;
    std::vector<std::string> names = option.aliases;
    names.push_back("--" + option.name);
    text += fmt::format("        {}) {}; return ;;\n", fmt::join(names, "|"), bash_value(option));
  }
  text += "      esac\n      if [[ $cur == -* ]]; then\n";
  text +=
      fmt::format("        COMPREPLY=($(compgen -W '{}' -- \"$cur\"))\n", fmt::join(spellings(command.options), " "));
  text += "      else\n        ";
  text += command.words.empty()
              ? bash_operand(command)
              : fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$cur\"))", fmt::join(command.words, " "));
  return text + "\n      fi ;;\n";
}

std::string bash_completion(const Manual& manual) {
  const std::string name = identifier(manual.program);
  const std::string words = fmt::format("{}", fmt::join(sub_command_words(manual), " "));
  std::string text = fmt::format(
      "# bash completion for {0}\n"
      "_{1}() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} sub='' i\n"
      "  COMPREPLY=()\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    [[ ${{COMP_WORDS[i]}} == -- ]] || continue\n"
      "    if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); return; fi\n"
      "    if ((i + 1 == COMP_CWORD)); then COMPREPLY=($(compgen -c -- \"$cur\")); "
      "else COMPREPLY=($(compgen -f -- \"$cur\")); fi\n"
      "    return\n"
      "  done\n"
      "  if ((COMP_CWORD > 1)); then\n"
      "    case \" {2} \" in *\" ${{COMP_WORDS[1]}} \"*) sub=${{COMP_WORDS[1]}} ;; esac\n"
      "  elif [[ $cur != -* ]]; then\n"
      "    COMPREPLY=($(compgen -W '{2}' -- \"$cur\") $(compgen -c -- \"$cur\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"$sub\" in\n",
      manual.program, name, words);
  for (const ManualCommand& command : manual.commands) text += bash_case(command);
  return text + fmt::format("  esac\n}}\ncomplete -o filenames -F _{} {}\n", name, manual.program);
}

// --- zsh

// A colon, a bracket and a backslash have a meaning in the specifications of _arguments.
std::string zsh_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_value(const Option& option) {
  if (option.takes == Takes::nothing) return "";
  const std::string name = zsh_text(option.value_name.empty() ? "value" : option.value_name);
  if (!option.words.empty()) return fmt::format(":{}:({})", name, fmt::join(option.words, " "));
  if (takes_folder(option)) return fmt::format(":{}:_files -/", name);
  return fmt::format(":{}:{}", name, takes_file(option) ? "_files" : " ");
}

std::string zsh_arguments(const ManualCommand& command) {
  std::string text = "_arguments";
  for (const Option& option : command.options.options()) {
    if (option.hidden) continue;
    std::vector<std::string> names = option.aliases;
    names.push_back("--" + option.name);
    for (const std::string& name : names) {
      const std::string spec = fmt::format("*{}[{}]{}", name, zsh_text(option.help), zsh_value(option));
      text += " \\\n        " + in_single_quotes(spec, "'\\''");
    }
  }
  std::string operand = "*: :_files";
  if (command.operand == Operand::folder) operand = "*:folder:_files -/";
  if (command.operand == Operand::command) operand = "*:::command:_normal";
  if (!command.words.empty()) operand = fmt::format("1:value:({})", fmt::join(command.words, " "));
  return text + " \\\n        " + in_single_quotes(operand, "'\\''");
}

std::string zsh_completion(const Manual& manual) {
  const std::string name = identifier(manual.program);
  std::string words;
  for (const ManualCommand& command : manual.commands) {
    if (command.word.empty()) continue;
    words += "\n      " + in_single_quotes(fmt::format("{}:{}", command.word, zsh_text(command.summary)), "'\\''");
  }
  std::string text = fmt::format("#compdef {0}\n_{1}() {{\n", manual.program, name);
  if (!words.empty()) {
    text += fmt::format(
        "  local -a words_of_{0}=({1})\n"
        "  if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then\n"
        "    _describe 'sub-command' words_of_{0}\n    _command_names -e\n    return\n  fi\n",
        name, words);
  }
  text += "  case $words[2] in\n";
  for (const ManualCommand& command : manual.commands) {
    if (command.word.empty()) continue;
    text += fmt::format("    {})\n      shift words\n      ((CURRENT--))\n      {} ;;\n", command.word,
                        zsh_arguments(command));
  }
  return text +
         fmt::format("    *)\n      {} ;;\n  esac\n}}\n_{} \"$@\"\n", zsh_arguments(manual.commands.front()), name);
}

// --- fish

std::string fish_completion(const Manual& manual) {
  const auto quoted = [](const std::string& text) { return in_single_quotes(text, "\\'"); };
  const std::string words = fmt::format("{}", fmt::join(sub_command_words(manual), " "));
  std::string text = fmt::format("# fish completion for {}\n", manual.program);
  for (const ManualCommand& command : manual.commands) {
    std::string where = fmt::format("complete -c {}", manual.program);
    if (command.word.empty()) {
      if (!words.empty()) where += fmt::format(" -n 'not __fish_seen_subcommand_from {}'", words);
    } else {
      text += fmt::format("complete -c {} -n __fish_use_subcommand -a {} -d {}\n", manual.program, command.word,
                          quoted(command.summary));
      where += fmt::format(" -n '__fish_seen_subcommand_from {}'", command.word);
    }
    if (!command.words.empty()) text += fmt::format("{} -f -a '{}'\n", where, fmt::join(command.words, " "));
    for (const Option& option : command.options.options()) {
      if (option.hidden) continue;
      text += fmt::format("{} -l {}", where, option.name);
      for (const std::string& alias : option.aliases) {
        if (alias.rfind("--", 0) != 0) text += fmt::format(" {} {}", alias.size() == 2 ? "-s" : "-o", alias.substr(1));
      }
      if (option.takes != Takes::nothing) text += takes_file(option) || takes_folder(option) ? " -r" : " -x";
      if (!option.words.empty()) text += fmt::format(" -a '{}'", fmt::join(option.words, " "));
      text += fmt::format(" -d {}\n", quoted(option.help));
    }
  }
  return text;
}

}  // namespace

std::string completion(const Manual& manual, const std::string& shell) {
  if (shell == "bash") return bash_completion(manual);
  if (shell == "zsh") return zsh_completion(manual);
  if (shell == "fish") return fish_completion(manual);
  throw Error(fmt::format("completion takes one shell: type {} completion bash, zsh or fish", manual.program));
}

}  // namespace dsat::cli_kit
