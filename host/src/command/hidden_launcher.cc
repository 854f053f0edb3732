// Splits a shell text roughly into commands and looks for a launcher in each, as in the user's command. Quotes and
// variables are not followed, so a launcher may be missed.
#include "command/hidden_launcher.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "command/environment_use.h"
#include "command/launchers.h"
#include "dsat/base/files.h"

namespace dsat::host {

namespace {

constexpr size_t kLargestShellScript = size_t{64} << 10;

// Whether a launcher is not reached by a trial's variables. If it has its own numbers or names of devices, it ignores
// the visible devices, even if it uses the trial's port.
bool is_out_of_reach(const Argv& words, bool has_trials_port) {
  if (words.empty()) return false;
  const LauncherUse launcher = find_launcher(words);
  if (launcher.kind == Launcher::none) return false;
  const bool picks_devices =
      launcher.kind == Launcher::deepspeed
          ? !launcher_flags(words, launcher, {"--num_gpus", "--num_accelerators", "--include", "-i", "--exclude", "-e"})
                 .empty()
          : launcher.kind == Launcher::accelerate &&
                !launcher_flags(words, launcher, {"--gpu_ids", "--gpu-ids"}).empty();
  return picks_devices || !has_trials_port;
}

bool starts_launcher(std::string_view text) {
  const bool has_trials_port = reads_variable(text, "MASTER_PORT");
  Argv words;
  std::string word;
  bool in_comment = false;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::exchange(word, ""));
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size() && text[i + 1] == '\n') {
      ++i;
      end_word();
    } else if (c == '\n' || (!in_comment && std::string_view(";&|()").find(c) != std::string_view::npos)) {
      in_comment = false;
      end_word();
      if (is_out_of_reach(words, has_trials_port)) return true;
      words.clear();
    } else if (std::string_view(" \t\r\"'`").find(c) != std::string_view::npos) {
      end_word();
    } else if (c == '#' && word.empty()) {
      in_comment = true;
    } else if (!in_comment) {
      word += c;
    }
  }
  end_word();
  return is_out_of_reach(words, has_trials_port);
}

// Returns the text of a shell script; empty: there is none.
std::string text_of_script(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return "";
  FileText text = try_read_file(file, kLargestShellScript);
  return text.ok() && language_of(file, text.bytes) == Language::shell ? std::move(text.bytes) : "";
}

bool ends_in_json(const std::string& word) { return word.size() > 5 && word.compare(word.size() - 5, 5, ".json") == 0; }

// Returns the configuration that a shell text names; empty: none, or a variable of the shell.
std::string config_in(std::string_view text) {
  Argv words;
  std::string word;
  for (const char c : std::string(text) + " ") {
    if (std::string_view(" \t\r\n\"'`;&|()\\").find(c) == std::string_view::npos) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, ""));
    }
  }
  for (const FlagUse& use :
       find_flag(words, {"--deepspeed_config", "--deepspeed-config", "--deepspeed_config_file", "--deepspeed"})) {
    const bool is_value = use.value < words.size() && (use.value == use.flag || words[use.value][0] != '-');
    if (is_value && ends_in_json(use.read(words))) return use.read(words);
  }
  return "";
}

}  // namespace

std::string hidden_launcher(const Argv& command, const std::filesystem::path& cwd) {
  if (find_launcher(command).kind != Launcher::none) return "";
  for (size_t i = 0; i < command.size() && !is_python_script(command[i]); ++i) {
    const std::string& word = command[i];
    if (word.empty()) continue;
    if (word.find_first_of(" \t\n") != std::string::npos) {
      if (starts_launcher(word)) return i > 0 ? fmt::format("the words behind {}", command[i - 1]) : "the command";
    } else if (starts_launcher(text_of_script(cwd / word))) {
      return word;
    }
  }
  return "";
}

std::optional<HiddenConfig> hidden_config(const Argv& command, const std::filesystem::path& cwd) {
  for (const std::string& word : command) {
    if (word.empty() || is_python_script(word)) continue;
    const bool is_text = word.find_first_of(" \t\n") != std::string::npos;
    const std::string file = config_in(is_text ? word : text_of_script(cwd / word));
    if (!file.empty()) return HiddenConfig{file, is_text ? "" : word};
  }
  return std::nullopt;
}

}  // namespace dsat::host
