// Tables of options: those of DeepSpeed's launcher up to 0.19, and of torchrun up to 2.9.
#include "command/launcher_options.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "dsat/base/affix.h"

namespace dsat::host {
namespace {

constexpr std::string_view kSwitches[] = {
    "-h", "--help", "-m", "--module", "--no_python",
    // deepspeed
    "--no_local_rank", "--force_multi", "--save_pid", "--elastic_training", "--bind_cores_to_rank", "--no_ssh",
    "--no_ssh_check",
    // torchrun
    "--standalone", "--run_path", "--use_env", "--virtual_local_rank",
    // accelerate
    "--multi_gpu", "--cpu", "--tpu", "--ipex", "--use_xpu", "--use_mps_device", "--use_deepspeed", "--use_fsdp",
    "--use_megatron_lm", "--use_parallelism_config", "--same_network", "--quiet", "-q", "--debug", "--tpu_cluster",
    "--no_tpu_cluster", "--tpu_use_cluster", "--tpu_use_sudo", "--downcast_bf16", "--enable_cpu_affinity",
    "--dynamo_use_dynamic", "--dynamo_use_fullgraph", "--dynamo_use_regional_compilation",
    "--fp8_use_autocast_during_eval"};

constexpr std::string_view kOfDeepSpeed[] = {"--autotuning",
                                             "--bind_core_list",
                                             "--bind_cores_to_rank",
                                             "--elastic_training",
                                             "--enable_each_rank_log",
                                             "--exclude",
                                             "--force_multi",
                                             "--help",
                                             "--hostfile",
                                             "--include",
                                             "--launcher",
                                             "--launcher_args",
                                             "--log_level",
                                             "--master_addr",
                                             "--master_port",
                                             "--max_elastic_nodes",
                                             "--min_elastic_nodes",
                                             "--module",
                                             "--no_local_rank",
                                             "--no_python",
                                             "--no_ssh",
                                             "--no_ssh_check",
                                             "--node_rank",
                                             "--num_accelerators",
                                             "--num_gpus",
                                             "--num_nodes",
                                             "--quiet",
                                             "--save_pid",
                                             "--ssh_port",
                                             "--venv_script"};

// Each is there with dashes and with underscores.
constexpr std::string_view kOfTorchrun[] = {
    "--event_log_handler", "--help",         "--local_addr",  "--local_ranks_filter", "--log_dir",
    "--logs_specs",        "--master_addr",  "--master_port", "--max_restarts",       "--module",
    "--monitor_interval",  "--nnodes",       "--no_python",   "--node_rank",          "--nproc_per_node",
    "--numa_binding",      "--rdzv_backend", "--rdzv_conf",   "--rdzv_endpoint",      "--rdzv_id",
    "--redirects",         "--role",         "--run_path",    "--signals_to_handle",  "--standalone",
    "--start_method",      "--tee",          "--use_env",     "--virtual_local_rank"};

// Returns the only option that begins with `name`; empty: none, several, or `name` is an option itself.
template <size_t n>
std::string_view only_option(const std::string_view (&options)[n], const std::string& name) {
  std::string_view found;
  for (const std::string_view option : options) {
    if (option == name) return "";
    if (!starts_with(option, name)) continue;
    if (!found.empty()) return "";
    found = option;
  }
  return found;
}

}  // namespace

bool is_launcher_switch(const std::string& option) {
  return std::find(std::begin(kSwitches), std::end(kSwitches), with_underscores(option)) != std::end(kSwitches);
}

Argv without_abbreviations(Argv argv) {
  LauncherUse launcher = find_launcher(argv);
  if (launcher.kind != Launcher::deepspeed && launcher.kind != Launcher::torchrun) return argv;
  for (size_t i = launcher.begin; i < launcher.end; ++i) {
    const std::string name = argv[i].substr(0, argv[i].find('='));
    if (name.size() < 4 || !starts_with(name, "--")) continue;
    const std::string_view whole = launcher.kind == Launcher::deepspeed
                                       ? only_option(kOfDeepSpeed, name)
                                       : only_option(kOfTorchrun, with_underscores(name));
    if (whole.empty()) continue;
    argv[i].replace(0, name.size(), whole);
    launcher = find_launcher(argv);  // the option may be a switch
  }
  return argv;
}

}  // namespace dsat::host
