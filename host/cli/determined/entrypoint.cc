// Cuts the entrypoint into words with a small state machine of a shell's quotes, then looks for a launch module and
// puts a launcher of this machine in its place.
#include "determined/entrypoint.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "dsat/host/environment.h"

namespace dsat::cli {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kLaunch = "determined.launch.";
constexpr const char* kTrialClass =
    "names a Trial class, which only Determined's own trainer runs: give the script that trains (docs/"
    "migrate-from-determined.md)";

// A shell's quoting rules, and nothing of its language.
class WordCutter {
 public:
  explicit WordCutter(const std::string& text) : text_(text) {}

  Words cut() {
    while (at_ < text_.size()) take();
    if (quote_ != 0) throw Error(fmt::format("has a {} that nothing closes", quote_));
    end_word();
    return words_;
  }

 private:
  void take() {
    const char c = text_[at_++];
    if (quote_ == '\'' || (quote_ == '"' && c != '\\')) {
      if (quote_ == '"' && (c == '$' || c == '`')) refuse(c);
      if (c == quote_) {
        quote_ = 0;
      } else {
        word_ += c;
      }
    } else if (c == '\\') {
      take_escaped();
    } else if (c == '\'' || c == '"') {
      quote_ = c;
      in_word_ = true;
    } else if (c == ' ' || c == '\t' || (c == '\n' && rest_is_blank())) {
      end_word();
    } else {
      if (std::string_view("\n;&|<>()$`*?[#").find(c) != std::string_view::npos && !(c == '#' && in_word_)) refuse(c);
      word_ += c;
      in_word_ = true;
    }
  }

  // A backslash at the end of a line joins it with the next.
  void take_escaped() {
    if (at_ == text_.size()) throw Error("ends with a backslash");
    const char next = text_[at_++];
    if (next == '\n') return;
    const bool kept = quote_ == '"' && std::string_view("\"\\$`").find(next) == std::string_view::npos;
    if (kept) word_ += '\\';
    word_ += next;
    in_word_ = true;
  }

  bool rest_is_blank() const { return text_.find_first_not_of(" \t\n", at_) == std::string::npos; }

  void end_word() {
    if (in_word_) words_.push_back(word_);
    word_.clear();
    in_word_ = false;
  }

  [[noreturn]] static void refuse(char c) {
    const std::string shown = c == '\n' ? "a second line" : fmt::format("'{}'", c);
    throw Error(
        fmt::format("holds shell syntax ({}): write one command in plain words, quoted where it needs to be, or "
                    "put it into a script",
                    shown));
  }

  const std::string& text_;
  size_t at_ = 0;
  char quote_ = 0;
  bool in_word_ = false;
  std::string word_;
  Words words_;
};

void append(Words& words, Words::const_iterator begin, Words::const_iterator end) {
  words.insert(words.end(), begin, end);
}

// `python3 -m determined.launch.NAME`, wherever it stands.
struct LaunchModule {
  size_t python = 0;
  std::string name;
};
std::optional<LaunchModule> find_module(const Words& words) {
  for (size_t i = 0; i + 2 < words.size(); ++i) {
    if (words[i + 1] == "-m" && words[i + 2].rfind(kLaunch, 0) == 0) {
      return LaunchModule{i, words[i + 2].substr(kLaunch.size())};
    }
  }
  return std::nullopt;
}

bool in_path(const LaunchRequest& request, const char* program) {
  return host::find_program(program, request.cwd, request.environment).ok();
}

void refuse_trial_class(const Words& words, Words::const_iterator script) {
  const bool option = script != words.end() && script->rfind("--trial", 0) == 0;
  if (option) throw Error(kTrialClass);
  if (script == words.end()) throw Error("has no script behind its launch module");
}

}  // namespace

std::vector<std::string> entrypoint_words(const Json& entrypoint) {
  Words words;
  if (entrypoint.is_string()) {
    words = WordCutter(entrypoint.get<std::string>()).cut();
  } else {
    for (const Json& part : entrypoint) {
      if (part.is_structured() || part.is_null())
        throw Error(fmt::format("must be a list of words, it has {}", part.dump()));
      words.push_back(part.is_string() ? part.get<std::string>() : part.dump());
    }
  }
  if (words.empty() || words[0].empty()) throw Error("is empty: give the command that trains");
  const bool trial_class = words.size() == 1 && words[0].find(':') != std::string::npos && words[0][0] != '/';
  if (trial_class) throw Error(kTrialClass);
  return words;
}

LaunchCommand replace_launch_module(const LaunchRequest& request) {
  const Words& words = request.words;
  const std::optional<LaunchModule> module = find_module(words);
  if (!module) return {words, ""};
  if (module->name != "deepspeed" && module->name != "torch_distributed") {
    throw Error(
        fmt::format("starts through determined.launch.{}, which needs Determined: dsat knows "
                    "determined.launch.deepspeed and determined.launch.torch_distributed",
                    module->name));
  }
  const auto script = words.begin() + static_cast<std::ptrdiff_t>(module->python) + 3;
  refuse_trial_class(words, script);

  const std::string slots = fmt::format("{}", request.slots_per_trial);
  const std::string wanted = fmt::format("determined.launch.{}", module->name);
  LaunchCommand result;
  append(result.words, words.begin(), words.begin() + static_cast<std::ptrdiff_t>(module->python));
  if (module->name == "deepspeed" && in_path(request, "deepspeed")) {
    for (const char* word : {"deepspeed", "--num_gpus", slots.c_str(), "--no_python", "--no_local_rank"}) {
      result.words.emplace_back(word);
    }
  } else if (in_path(request, "torchrun")) {
    for (const char* word : {"torchrun", "--no_python", "--nproc_per_node", slots.c_str()}) {
      result.words.emplace_back(word);
    }
    if (module->name == "deepspeed") {
      result.notice = fmt::format("deepspeed is not in PATH: torchrun starts what {} would", wanted);
    }
  } else if (request.slots_per_trial == 1) {
    result.notice = fmt::format("no launcher in PATH: the script runs by itself, without {}", wanted);
  } else {
    throw Error(
        fmt::format("starts through {} on {} slots, and neither deepspeed nor torchrun is in PATH: install one, or "
                    "set resources.slots_per_trial to 1",
                    wanted, slots));
  }
  append(result.words, script, words.end());
  return result;
}

}  // namespace dsat::cli
