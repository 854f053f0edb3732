// Finds the launcher token by token: after env and NAME=value, through srun, mpirun and python, to a known name. If
// there is none, a later word may be a launcher, because other programs (`uv run`, `conda run -n NAME`) run the command
// after them. Only a whole number of at least 0 is a count: -1 is the deepspeed launcher's "all".
#include "command/launchers.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "command/environment_use.h"
#include "command/launcher_options.h"
#include "command/own_launchers.h"
#include "command/wrappers.h"
#include "dsat/base/affix.h"
#include "dsat/base/numbers.h"

namespace dsat::host {

namespace {

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_option(const std::string& token) { return token.size() > 1 && token[0] == '-'; }

Launcher launcher_named(std::string_view program) {
  if (one_of(program, {"deepspeed", "deepspeed.pt", "ds"})) return Launcher::deepspeed;
  if (program == "accelerate-launch") return Launcher::accelerate;
  return program == "torchrun" ? Launcher::torchrun : Launcher::none;
}

Launcher launcher_module(std::string_view module) {
  if (one_of(module, {"deepspeed", "deepspeed.launcher.runner"})) return Launcher::deepspeed;
  if (module == "accelerate.commands.launch") return Launcher::accelerate;
  return one_of(module, {"torch.distributed.run", "torch.distributed.launch"}) ? Launcher::torchrun : Launcher::none;
}

// Skips words before the real program: env, NAME=value.
size_t skip_prefixes(const Argv& argv, size_t i) {
  while (i < argv.size() &&
         (one_of(base_name(argv[i]), {"env", "nohup", "exec"}) ||
          (argv[i][0] != '-' && argv[i].find('=') != std::string::npos && argv[i].find('/') > argv[i].find('=')))) {
    ++i;
  }
  return i;
}

// Returns the launcher program at token i.
LauncherUse launcher_program(const Argv& argv, size_t i) {
  const std::string_view program = base_name(argv[i]);
  if (const Launcher direct = launcher_named(program); direct != Launcher::none) return {direct, i + 1, i + 1};
  const bool accelerates = program == "accelerate" && i + 1 < argv.size() && argv[i + 1] == "launch";
  return accelerates ? LauncherUse{Launcher::accelerate, i + 2, i + 2} : mixed_launcher(argv, i);
}

// Also recognises a script given to Python, and `python -m MODULE`.
LauncherUse launcher_at(const Argv& argv, size_t i) {
  if (!starts_with(base_name(argv[i]), "python")) return launcher_program(argv, i);
  for (size_t k = i + 1; k < argv.size(); ++k) {
    if (one_of(argv[k], {"-W", "-X", "--check-hash-based-pycs"})) {  // Python's own options with a value
      ++k;
      continue;
    }
    if (argv[k] == "-m" && k + 1 < argv.size()) return {launcher_module(argv[k + 1]), k + 2, k + 2};
    if (!is_option(argv[k])) return launcher_program(argv, k);
  }
  return {};
}

// Returns the program that srun or mpirun starts.
size_t wrapped_program(const Argv& argv, size_t wrapper) {
  return skip_prefixes(argv, end_of_wrapper_options(argv, wrapper));
}

// Returns the value of -n and similar options ("-n 4", "-n4", "--ntasks=4") among the wrapper's own options.
std::optional<FlagUse> wrapper_flag(const Argv& argv, size_t wrapper, std::initializer_list<std::string_view> names) {
  const size_t end = wrapped_program(argv, wrapper);
  for (const FlagUse& use : find_flag(argv, names)) {
    if (use.flag > wrapper && use.value < end) return use;
  }
  for (size_t i = wrapper + 1; i < end; ++i) {
    for (const std::string_view name : names) {
      const bool attached = name.size() == 2 && argv[i].size() > 2 && starts_with(argv[i], name);
      if (attached && std::isdigit(argv[i][2]) != 0) return FlagUse{i, i, 2};
    }
  }
  return std::nullopt;
}

std::optional<int> count_of(const Argv& argv, const std::optional<FlagUse>& use) {
  return use && use->value < argv.size() ? parse_count(use->read(argv)) : std::nullopt;
}

// Returns the number of processes that srun or mpirun starts.
std::optional<int> wrapper_tasks(const Argv& argv, size_t wrapper) {
  if (const auto tasks = count_of(argv, wrapper_flag(argv, wrapper, {"-n", "-np", "--ntasks", "--np"}))) return tasks;
  const auto nodes = count_of(argv, wrapper_flag(argv, wrapper, {"-N", "--nodes"}));
  const auto per_node = count_of(argv, wrapper_flag(argv, wrapper, {"--ntasks-per-node", "--ppn", "-ppn"}));
  if (!nodes) return std::nullopt;
  return *nodes * per_node.value_or(1);
}

// A placeholder before the script stands for an option of the launcher, or for none.
bool is_placeholder(const std::string& word) { return word.size() > 2 && word.front() == '{' && word.back() == '}'; }

// Returns the place after the launcher's own options. A script is never an option's value, so an unknown option before
// it is a switch of a newer launcher.
size_t end_of_launcher_options(const Argv& argv, size_t begin) {
  size_t end = begin;
  while (end < argv.size() && (is_option(argv[end]) || is_placeholder(argv[end]))) {
    const bool has_value =
        is_option(argv[end]) && argv[end].find('=') == std::string::npos && !is_launcher_switch(argv[end]);
    ++end;
    if (has_value && end < argv.size() && !is_python_script(argv[end])) ++end;
  }
  return end;
}

// Whether the launcher starts a script or a module. A word that only has a launcher's name (`uv run --with deepspeed
// python`) does not.
bool starts_script(const Argv& argv, const LauncherUse& use) {
  if (use.mixed) return true;
  const size_t end = end_of_launcher_options(argv, use.begin);
  if (end < argv.size() && is_python_script(argv[end])) return true;
  return std::any_of(argv.begin() + static_cast<std::ptrdiff_t>(use.begin),
                     argv.begin() + static_cast<std::ptrdiff_t>(end), [](const std::string& word) {
                       return one_of(word, {"-m", "--module", "--no_python", "--no-python"});
                     });
}

// Whether the word at i is the name of a package or an environment, which may be a launcher's name too.
bool is_name_for_option(const Argv& argv, size_t i) {
  return i > 0 && one_of(argv[i - 1], {"-n", "--name", "--with", "-w", "--with-editable", "--with-requirements",
                                       "--extra", "--group", "--only-group", "--package"});
}

// Whether the word at i is a Python that starts a program; the words after it belong to the program.
bool is_python_program(const Argv& argv, size_t i) {
  if (!starts_with(base_name(argv[i]), "python") || i + 1 == argv.size()) return false;
  return is_option(argv[i + 1]) || is_python_script(argv[i + 1]);
}

constexpr std::array<const char*, 4> kVisibilityVariables{"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                                          "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"};

bool is_shell_script(const std::string& word) {
  const std::string ending = word.substr(std::min(word.rfind('.'), word.size()));
  return word.find_first_of(" \t") == word.npos && (ending == ".sh" || ending == ".bash");
}

// Finds NAME=value, also in an option's value: --export=ALL,NAME=value. A word with blanks is a text for a shell or for
// Python: `bash -c "NAME=value python3 t.py"`.
bool sets_in_word(const std::string& word, std::string_view name) {
  if (word.find_first_of(" \t\n") == std::string::npos) {
    const size_t at = word.find(name);
    if (at == std::string::npos || (at > 0 && word[at - 1] != ',' && word[at - 1] != '=')) return false;
  }
  return sets_variable(word, name, Language::shell) || sets_variable(word, name, Language::python);
}

// Returns the launcher among the words from `begin` to the first script; `wrapper`: found by find_launcher so far.
LauncherUse launcher_behind(const Argv& argv, size_t begin, std::optional<size_t> wrapper) {
  for (size_t i = begin; i < argv.size() && !is_python_script(argv[i]); ++i) {
    if (argv[i].find('=') != std::string::npos || is_name_for_option(argv, i)) continue;
    if (!wrapper && is_wrapper(base_name(argv[i])) && i + 1 < argv.size() && is_option(argv[i + 1])) {
      wrapper = i;
      i = end_of_wrapper_options(argv, i) - 1;
      continue;
    }
    LauncherUse use = launcher_at(argv, i);
    if (argv[i] == "-m" && i + 1 < argv.size()) use = {launcher_module(argv[i + 1]), i + 2, i + 2};
    use.wrapper = wrapper;
    if (use.kind != Launcher::none && starts_script(argv, use)) return use;
    if (is_python_program(argv, i)) break;
  }
  return {Launcher::none, 0, 0, wrapper};
}

}  // namespace

bool is_python_script(const std::string& word) {
  constexpr std::string_view kEnding = ".py";
  return word.size() > kEnding.size() && word.compare(word.size() - kEnding.size(), kEnding.size(), kEnding) == 0 &&
         word.find_first_of(" \t\n") == std::string::npos;
}

bool starts_python(const Argv& argv) {
  for (size_t i = 0; i < argv.size(); ++i) {
    if (is_python_script(argv[i]) || is_python_program(argv, i)) return true;
  }
  return false;
}

LauncherUse find_launcher(const Argv& argv) {
  const size_t first = skip_prefixes(argv, 0);
  if (first == argv.size()) return {};
  const bool wrapped = is_wrapper(base_name(argv[first]));
  const size_t program = wrapped ? wrapped_program(argv, first) : first;
  LauncherUse use = program < argv.size() ? launcher_at(argv, program) : LauncherUse{};
  if (wrapped) use.wrapper = first;
  if (use.kind == Launcher::none) use = launcher_behind(argv, program, use.wrapper);
  if (use.kind != Launcher::none && !use.mixed) use.end = end_of_launcher_options(argv, use.begin);
  return use;
}

std::string own_visibility(const Argv& argv, const LauncherUse& launcher) {
  // The deepspeed launcher and accelerate get a trial's devices as options.
  if (launcher.kind == Launcher::deepspeed || launcher.kind == Launcher::accelerate) return "";
  // Words after the script, or after Python's -m MODULE, belong to the script.
  bool in_python = false;
  for (size_t i = 0; i < (launcher.end > 0 ? launcher.end : argv.size()); ++i) {
    if (is_python_script(argv[i]) || is_shell_script(argv[i]) || (in_python && argv[i] == "-m")) break;
    in_python = in_python || is_python_program(argv, i);
    for (const char* name : kVisibilityVariables) {
      if (sets_in_word(argv[i], name)) return name;
    }
  }
  return "";
}

std::vector<FlagUse> launcher_flags(const Argv& argv, const LauncherUse& launcher,
                                    std::initializer_list<std::string_view> names) {
  std::vector<FlagUse> uses;
  for (const FlagUse& use : find_flag(argv, names)) {
    if (use.flag >= launcher.begin && use.flag < launcher.end) uses.push_back(use);
  }
  return uses;
}

std::string multinode_launcher(const Argv& argv, const LauncherUse& launcher) {
  std::string name = launcher_value(argv, launcher, {"--launcher"}).value_or(kPdsh);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

std::vector<size_t> launcher_tokens(const Argv& argv, const LauncherUse& launcher,
                                    std::initializer_list<std::string_view> names) {
  std::vector<size_t> tokens;
  for (const FlagUse& use : launcher_flags(argv, launcher, names)) {
    tokens.push_back(use.flag);
    const bool has_value = use.value != use.flag && !is_launcher_switch(argv[use.flag]);
    if (has_value && use.value < launcher.end) tokens.push_back(use.value);
  }
  return tokens;
}

std::optional<std::string> launcher_value(const Argv& argv, const LauncherUse& launcher,
                                          std::initializer_list<std::string_view> names) {
  const std::vector<FlagUse> uses = launcher_flags(argv, launcher, names);
  if (uses.empty() || uses.back().value >= launcher.end) return std::nullopt;
  return uses.back().read(argv);
}

bool launcher_switch(const Argv& argv, const LauncherUse& launcher, std::string_view name) {
  const auto begin = argv.begin() + static_cast<std::ptrdiff_t>(launcher.begin);
  return std::find(begin, argv.begin() + static_cast<std::ptrdiff_t>(launcher.end), name) !=
         argv.begin() + static_cast<std::ptrdiff_t>(launcher.end);
}

std::optional<FlagUse> slots_flag(const Argv& argv, const LauncherUse& launcher) {
  std::vector<FlagUse> uses;
  switch (launcher.kind) {
    case Launcher::deepspeed:
      return std::nullopt;
    case Launcher::torchrun:
      uses = launcher_flags(argv, launcher, {"--nproc_per_node", "--nproc-per-node"});
      break;
    case Launcher::accelerate:
      uses = launcher_flags(argv, launcher, {"--num_processes", "--num-processes"});
      break;
    case Launcher::none:
      if (const auto variable = torchrun_variable(argv, "NPROC_PER_NODE")) return variable;
      if (launcher.wrapper) {
        if (const auto tasks = wrapper_flag(argv, *launcher.wrapper, {"-n", "-np", "--ntasks", "--np"})) return tasks;
      }
      uses = find_flag(argv, {"--num_gpus", "--nproc_per_node", "--nproc-per-node", "--ranks"});
      break;
  }
  if (uses.empty() || uses[0].value >= argv.size()) return std::nullopt;
  return uses[0];
}

std::optional<int> command_slots(const Argv& argv, const LauncherUse& launcher) {
  std::optional<int> count = count_of(argv, slots_flag(argv, launcher));
  if (launcher.kind == Launcher::none && launcher.wrapper && !count) return wrapper_tasks(argv, *launcher.wrapper);
  if (launcher.kind != Launcher::torchrun || !count) return count;
  // torchrun's count is for one node, and srun starts torchrun once per node.
  const auto nodes = launcher_value(argv, launcher, {"--nnodes"});
  if (nodes) return *count * parse_count(*nodes).value_or(1);
  return *count * (launcher.wrapper ? wrapper_tasks(argv, *launcher.wrapper).value_or(1) : 1);
}

}  // namespace dsat::host
