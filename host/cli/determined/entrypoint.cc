// Splits the entrypoint into words with a small state machine for a shell's quotes, then replaces a launch module by a
// launcher of this machine.
#include "determined/entrypoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "dsat/base/shell.h"
#include "dsat/host/environment.h"

namespace dsat::cli {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kLaunch = "determined.launch.";
constexpr const char* kHarness = "determined.exec.harness";  // in sdk/python; trains a trial class
constexpr const char* kHorovod =
    "starts through Horovod, but DeepSpeed must set up its ranks itself: start the script by "
    "\"python3 -m determined.launch.deepspeed SCRIPT\"";

// NAME=value, which sets a variable if it stands before the command.
bool is_assignment(const std::string& word) {
  const size_t equals = word.find('=');
  return equals != std::string::npos && is_variable_name(word.substr(0, equals));
}

// Follows a shell's quoting rules; refuses all other shell syntax.
class WordCutter {
 public:
  explicit WordCutter(const std::string& text) : text_(text) {}

  Words cut() {
    while (at_ < text_.size()) take();
    if (quote_ != 0) throw Error(fmt::format("has a {} that is never closed", quote_));
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
      if (has_meaning(c)) refuse(c);
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

  bool has_meaning(char c) const {
    if (c == '#') return !in_word_;
    if (c == '~') return !in_word_ || begins_variable();
    return std::string_view("\n;&|<>()$`*?[").find(c) != std::string_view::npos;
  }

  // After the NAME= of a variable before the command.
  bool begins_variable() const {
    return is_assignment(word_) && word_.back() == '=' && std::all_of(words_.begin(), words_.end(), is_assignment);
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

// Puts `env` before variables at the beginning of the command, and removes `exec`, which has no meaning here.
void replace_prefixes(Words& words) {
  const auto command = std::find_if_not(words.begin(), words.end(), is_assignment);
  const bool has_variables = command != words.begin();
  if (command == words.end()) return words.clear();
  if (*command == "exec") words.erase(command);
  if (has_variables) words.insert(words.begin(), "env");
}

void append(Words& words, Words::const_iterator begin, Words::const_iterator end) {
  words.insert(words.end(), begin, end);
}

// The place of `python3 -m determined.launch.NAME` in the command.
struct LaunchModule {
  Words::const_iterator python, name;  // the words of the interpreter and of the module
};

// The interpreter before -m and its switches, two of which have a value: python3 -u -W ignore -m.
Words::const_iterator interpreter_before(Words::const_iterator switch_m, Words::const_iterator begin) {
  auto at = switch_m - 1;
  while (at != begin && (at->rfind('-', 0) == 0 || *(at - 1) == "-W" || *(at - 1) == "-X")) --at;
  return at;
}

std::optional<LaunchModule> find_module(const Words& words) {
  for (size_t i = 2; i < words.size(); ++i) {
    if (words[i - 1] != "-m" || words[i].rfind(kLaunch, 0) != 0) continue;
    const auto name = words.begin() + static_cast<std::ptrdiff_t>(i);
    return LaunchModule{interpreter_before(name - 1, words.begin()), name};
  }
  return std::nullopt;
}

bool in_path(const LaunchRequest& request, const char* program) {
  return host::find_program(program, request.cwd, request.environment).ok();
}

// module:Class, as in model_def:MyTrial.
bool is_trial_class(std::string_view text) {
  const size_t colon = text.find(':');
  return colon != std::string_view::npos && colon > 0 && colon + 1 < text.size() && text[0] != '/';
}

bool is_trial_flag(const std::string& word) {
  const std::string flag = word.substr(0, word.find('='));
  return flag == "--trial" || flag == "--train-entrypoint";
}

// The end of the launcher's own options, which may stand between the module and `--`.
Words::const_iterator end_of_options(const Words& words, Words::const_iterator first) {
  const bool has_options =
      first != words.end() && first->rfind('-', 0) == 0 && *first != "--" && !is_trial_flag(*first);
  const auto dashes = has_options ? std::find(first, words.end(), "--") : first;
  return dashes == words.end() ? first : dashes;
}

// The program of a rank: the words after the launch module and its options, or for `--trial module:Class` the harness
// that trains the class.
Words program_of(const Words& words, const LaunchModule& module, Words::const_iterator at) {
  if (at != words.end() && *at == "--") ++at;
  if (at == words.end()) throw Error("has no script after its launch module");
  if (!is_trial_flag(*at)) return Words(at, words.end());
  const size_t equals = at->find('=');
  const std::string flag = at->substr(0, equals);
  std::string trial_class;
  if (equals != std::string::npos) {
    trial_class = at->substr(equals + 1);
  } else if (++at != words.end()) {
    trial_class = *at;
  }
  if (!is_trial_class(trial_class)) {
    throw Error(fmt::format("has {} \"{}\": give module:Class, as in model_def:MyTrial", flag, trial_class));
  }
  Words program(module.python, module.name);
  program.insert(program.end(), {kHarness, "--train-entrypoint", trial_class});
  append(program, at + 1, words.end());
  return program;
}

void refuse_horovod(const Words& words) {
  for (const std::string& word : words) {
    if (word == "determined.launch.horovod" || word.substr(word.rfind('/') + 1) == "horovodrun") throw Error(kHorovod);
  }
}

}  // namespace

std::vector<std::string> entrypoint_words(const Json& entrypoint) {
  Words words;
  if (entrypoint.is_string()) {
    words = WordCutter(entrypoint.get<std::string>()).cut();
    replace_prefixes(words);
  } else {
    for (const Json& part : entrypoint) {
      if (part.is_structured() || part.is_null())
        throw Error(fmt::format("must be a list of words, it has {}", part.dump()));
      words.push_back(part.is_string() ? part.get<std::string>() : part.dump());
    }
  }
  if (words.empty() || words[0].empty()) throw Error("is empty: give the command that trains");
  refuse_horovod(words);
  // Determined's older form is the class alone.
  if (words.size() == 1 && is_trial_class(words[0])) {
    return {"python3", "-m", "determined.launch.deepspeed", "--trial", words[0]};
  }
  return words;
}

host::Environment take_variables(std::vector<std::string>& words) {
  if (words.empty() || words[0] != "env") return {};
  const auto first = words.begin() + 1;
  const auto command = std::find_if_not(first, words.end(), is_assignment);
  // `env` itself is needed for its switches and for other names: env -i train, env a.b=1 train.
  if (command == first || command == words.end() || command->find('=') != std::string::npos) return {};
  // PATH stays in the command, because the program is looked up in it.
  const auto taken =
      std::stable_partition(first, command, [](const std::string& word) { return word.rfind("PATH=", 0) == 0; });
  host::Environment variables(taken, command);
  words.erase(taken == first ? words.begin() : taken, command);
  return variables;
}

LaunchCommand replace_launch_module(const LaunchRequest& request) {
  const Words& words = request.words;
  const std::optional<LaunchModule> module = find_module(words);
  if (!module) return {words, ""};
  const std::string& wanted = *module->name;
  const bool by_deepspeed = wanted == "determined.launch.deepspeed";
  if (!by_deepspeed && wanted != "determined.launch.torch_distributed") {
    throw Error(
        fmt::format("starts through {}, which needs Determined: dsat knows determined.launch.deepspeed and "
                    "determined.launch.torch_distributed",
                    wanted));
  }
  const auto options = module->name + 1, options_end = end_of_options(words, options);
  const Words program = program_of(words, *module, options_end);

  const std::string slots = fmt::format("{}", request.slots_per_trial);
  LaunchCommand result;
  append(result.words, words.begin(), module->python);
  if (by_deepspeed && in_path(request, "deepspeed")) {
    result.words.emplace_back("deepspeed");
    append(result.words, options, options_end);
    for (const char* word : {"--num_gpus", slots.c_str(), "--no_python", "--no_local_rank"}) {
      result.words.emplace_back(word);
    }
  } else if (in_path(request, "torchrun")) {
    result.words.emplace_back("torchrun");
    if (!by_deepspeed) append(result.words, options, options_end);
    for (const char* word : {"--no_python", "--nproc_per_node", slots.c_str()}) result.words.emplace_back(word);
    if (by_deepspeed) {
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
  append(result.words, program.begin(), program.end());
  return result;
}

}  // namespace dsat::cli
