#include "command_args.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace dsat::host {

namespace {

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool starts_with(std::string_view text, std::string_view head) { return text.substr(0, head.size()) == head; }

// The use of `name` at token i, if it is one.
std::optional<FlagUse> use_at(const Argv& argv, size_t i, std::string_view name) {
  if (argv[i] == name) return FlagUse{i, i + 1, 0};
  if (argv[i].size() > name.size() && argv[i][name.size()] == '=' && starts_with(argv[i], name)) {
    return FlagUse{i, i, name.size() + 1};
  }
  return std::nullopt;
}

template <class Names>
std::vector<FlagUse> find_all(const Argv& argv, const Names& names) {
  std::vector<FlagUse> uses;
  for (size_t i = 0; i < argv.size(); ++i) {
    for (const std::string_view name : names) {
      const auto use = use_at(argv, i, name);
      if (!use) continue;
      uses.push_back(*use);
      i = std::max(i, std::min(use->value, argv.size() - 1));  // a value is no flag, whatever it looks like
      break;
    }
  }
  return uses;
}

// Options of the two launchers that take no value; every other one does.
bool is_switch(std::string_view option) {
  return one_of(option, {"-h", "--help", "-m", "--module", "--no_python", "--no-python", "--no_local_rank",
                         "--force_multi", "--save_pid", "--elastic_training", "--bind_cores_to_rank", "--no_ssh",
                         "--no_ssh_check", "--standalone", "--run_path", "--run-path", "--use_env", "--use-env"});
}

Launcher launcher_named(std::string_view program) {
  if (one_of(program, {"deepspeed", "deepspeed.pt"})) return Launcher::deepspeed;
  return program == "torchrun" ? Launcher::torchrun : Launcher::none;
}

Launcher launcher_module(std::string_view module) {
  if (one_of(module, {"deepspeed", "deepspeed.launcher.runner"})) return Launcher::deepspeed;
  return one_of(module, {"torch.distributed.run", "torch.distributed.launch"}) ? Launcher::torchrun : Launcher::none;
}

// Past what only sets the stage for the real program: env, NAME=value.
size_t skip_prefixes(const Argv& argv) {
  size_t i = 0;
  while (i < argv.size() &&
         (one_of(base_name(argv[i]), {"env", "nohup", "exec"}) ||
          (argv[i][0] != '-' && argv[i].find('=') != std::string::npos && argv[i].find('/') > argv[i].find('=')))) {
    ++i;
  }
  return i;
}

// The launcher's name as a program, as a script given to python, or as `python -m MODULE`.
LauncherUse launcher_word(const Argv& argv) {
  const size_t i = skip_prefixes(argv);
  if (i == argv.size()) return {};
  const Launcher direct = launcher_named(base_name(argv[i]));
  if (direct != Launcher::none) return {direct, i + 1, i + 1};
  if (!starts_with(base_name(argv[i]), "python")) return {};
  for (size_t k = i + 1; k < argv.size(); ++k) {
    if (argv[k] == "-m" && k + 1 < argv.size()) return {launcher_module(argv[k + 1]), k + 2, k + 2};
    if (argv[k][0] != '-') return {launcher_named(base_name(argv[k])), k + 1, k + 1};
  }
  return {};
}

std::optional<int> parse_count(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value >= 0 ? std::optional<int>(value) : std::nullopt;  // -1 is the deepspeed launcher's "all"
}

}  // namespace

std::vector<FlagUse> find_flag(const Argv& argv, std::initializer_list<std::string_view> names) {
  return find_all(argv, names);
}

std::vector<FlagUse> find_flag(const Argv& argv, const std::string& name) {
  return find_all(argv, std::array<std::string_view, 1>{name});
}

LauncherUse find_launcher(const Argv& argv) {
  LauncherUse use = launcher_word(argv);
  if (use.kind == Launcher::none) return {};
  while (use.end < argv.size() && !argv[use.end].empty() && argv[use.end][0] == '-') {
    const bool has_value = argv[use.end].find('=') == std::string::npos && !is_switch(argv[use.end]);
    use.end = std::min(use.end + (has_value ? 2 : 1), argv.size());
  }
  return use;
}

std::vector<size_t> launcher_tokens(const Argv& argv, const LauncherUse& launcher,
                                    std::initializer_list<std::string_view> names) {
  std::vector<size_t> tokens;
  for (const FlagUse& use : find_flag(argv, names)) {
    if (use.flag < launcher.begin || use.flag >= launcher.end) continue;
    tokens.push_back(use.flag);
    if (use.value != use.flag && use.value < launcher.end) tokens.push_back(use.value);
  }
  return tokens;
}

std::optional<int> command_slots(const Argv& argv) {
  if (argv.empty()) return std::nullopt;
  const bool cluster = one_of(base_name(argv[0]), {"srun", "mpirun", "mpiexec"});
  const auto uses =
      cluster
          ? find_flag(argv, {"-n", "-np", "--ntasks", "--num_gpus", "--nproc_per_node", "--nproc-per-node", "--ranks"})
          : find_flag(argv, {"--num_gpus", "--nproc_per_node", "--nproc-per-node", "--ranks"});
  if (uses.empty() || uses[0].value >= argv.size()) return std::nullopt;
  return parse_count(uses[0].read(argv));
}

}  // namespace dsat::host
