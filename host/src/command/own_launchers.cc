// Looks at the names of programs and of their subcommands.
#include "command/own_launchers.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsat/base/affix.h"
#include "dsat/base/numbers.h"

namespace dsat::host {

namespace {

constexpr const char* kProcesses = "NPROC_PER_NODE";
constexpr const char* kNodes = "NNODES";
constexpr const char* kForce = "FORCE_TORCHRUN";

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

Framework framework_at(const Argv& argv, size_t i) {
  const std::string_view program = base_name(argv[i]);
  const std::string next = i + 1 < argv.size() ? argv[i + 1] : "";
  // trl's other commands train nothing.
  if (program == "trl") {
    const bool trains = !next.empty() && next[0] != '-' && !one_of(next, {"env", "chat", "vllm-serve", "skills"});
    return trains ? Framework::trl : Framework::none;
  }
  if (program == "axolotl") return next == "train" ? Framework::axolotl : Framework::none;
  if (program == "swift" || program == "swift.cli.main") {
    return one_of(next, {"sft", "pt", "rlhf"}) ? Framework::swift : Framework::none;
  }
  const bool is_llama_factory = one_of(program, {"llamafactory-cli", "lmf", "llamafactory.cli"});
  return is_llama_factory && next == "train" ? Framework::llama_factory : Framework::none;
}

// Returns the place of the framework's program; argv.size(): there is none.
size_t framework_program(const Argv& argv) {
  size_t i = 0;
  while (i < argv.size() && (argv[i].empty() || framework_at(argv, i) == Framework::none)) ++i;
  return i;
}

bool reads_torchrun_variables(const Argv& argv) {
  const Framework framework = find_framework(argv);
  return framework == Framework::swift || framework == Framework::llama_factory;
}

bool is_given(const Argv& argv, const Environment& environment, std::string_view name) {
  return torchrun_variable(argv, name) || get_variable(environment, name);
}

}  // namespace

Framework find_framework(const Argv& argv) {
  const size_t program = framework_program(argv);
  return program < argv.size() ? framework_at(argv, program) : Framework::none;
}

LauncherUse mixed_launcher(const Argv& argv, size_t i) {
  const Framework framework = framework_at(argv, i);
  if (framework != Framework::trl && framework != Framework::axolotl) return {};
  LauncherUse use{Launcher::accelerate, i + 2, argv.size()};
  use.mixed = true;
  if (framework == Framework::trl) return use;
  // axolotl's parser takes the first word that it does not know for its file.
  const auto file = std::find_if(argv.begin() + static_cast<std::ptrdiff_t>(use.begin), argv.end(), is_yaml_name);
  if (file == argv.end()) return {};
  use.begin = static_cast<size_t>(file - argv.begin()) + 1;
  const std::vector<FlagUse> given = find_flag(argv, {"--launcher"});
  const std::string name = given.empty() || given.back().value >= argv.size() ? "" : given.back().read(argv);
  if (name == "torchrun") use.kind = Launcher::torchrun;
  return name == "python" ? LauncherUse{} : use;
}

std::optional<FlagUse> torchrun_variable(const Argv& argv, std::string_view name) {
  if (!reads_torchrun_variables(argv)) return std::nullopt;
  for (size_t i = framework_program(argv); i-- > 0;) {
    if (starts_with(argv[i], fmt::format("{}=", name))) return FlagUse{i, i, name.size() + 1};
  }
  return std::nullopt;
}

std::optional<int> processes_by_variables(const Argv& argv, const Environment& environment) {
  if (!reads_torchrun_variables(argv)) return std::nullopt;
  if (const auto count = get_variable(environment, kProcesses)) return parse_count(*count);
  // Without the variables swift trains in a single process.
  const bool is_single = find_framework(argv) == Framework::swift && !is_given(argv, environment, kNodes);
  return is_single ? std::optional(1) : std::nullopt;
}

std::string nodes_by_variable(const Argv& argv, const Environment& environment) {
  if (!reads_torchrun_variables(argv)) return "";
  const auto word = torchrun_variable(argv, kNodes);
  const std::string nodes = word ? word->read(argv) : get_variable(environment, kNodes).value_or("");
  return nodes == "1" ? "" : nodes;
}

void apply_torchrun_variables(Argv& argv, uint16_t port, const Environment& environment) {
  if (!reads_torchrun_variables(argv)) return;
  if (const auto own = torchrun_variable(argv, "MASTER_PORT"); own && port > 0) own->write(argv, fmt::to_string(port));
  const bool is_lone = find_framework(argv) == Framework::llama_factory && !is_given(argv, environment, kForce);
  if (is_lone) argv.insert(argv.begin(), {"env", fmt::format("{}=1", kForce)});
}

}  // namespace dsat::host
