// Translates options and a trial's shape into options of sbatch. `sbatch --test-only` checks them.
#include "slurm/job_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <re2/re2.h>

#include <algorithm>

#include "dsat/base/units.h"
#include "dsat/error.h"
#include "slurm/job_state.h"
#include "slurm/slurm_tools.h"

namespace dsat::host {

namespace {

constexpr std::chrono::minutes kBeyondTimeout{2};  // a job's time limit exceeds its trial's by this

std::vector<Slot> without_hosts(std::vector<Slot> slots) {
  for (Slot& slot : slots) slot.host.clear();
  return slots;
}

// Returns sbatch's reason without the prefixes, which tell the user nothing.
std::string refusal(const ToolOutput& output) {
  std::string text = output.last_word();
  for (const char* prefix : {"sbatch: error: ", "sbatch: fatal: ", "allocation failure: "}) {
    if (text.rfind(prefix, 0) == 0) text.erase(0, std::string(prefix).size());
  }
  return text;
}

}  // namespace

TrialShape shape_of(const std::vector<Slot>& slots) {
  TrialShape shape{{}};
  const std::string* host = nullptr;
  for (const Slot& slot : slots) {
    if (host == nullptr || *host != slot.host) shape.node_slots.push_back(0);
    ++shape.node_slots.back();
    host = &slot.host;
  }
  return shape;
}

Spread spread_of(const JobRequest& request, const TrialShape& shape) {
  if (request.slurm_launch == "command" || request.slurm_launch == "deepspeed") return Spread::command;
  if (request.slurm_launch == "srun") return Spread::srun;
  if (request.slurm_launch == "torchrun") return Spread::node;
  if (request.launcher == Launcher::deepspeed) return Spread::command;
  if (shape.nodes() == 1 && (request.launcher != Launcher::none || request.command_has_count)) return Spread::command;
  if (request.launcher != Launcher::none) return Spread::node;
  return shape.slots() > 1 ? Spread::srun : Spread::command;
}

std::string gres_of(const JobRequest& request, const TrialShape& shape) {
  if (request.gres == "none") return "";
  const int slots = *std::max_element(shape.node_slots.begin(), shape.node_slots.end());
  if (request.gres.empty()) return request.has_gpus ? fmt::format("gpu:{}", slots) : "";
  // "gpu" and "gpu:a100" are kinds of device, of which a trial takes one per slot. A number at the end is kept.
  const size_t colon = request.gres.rfind(':');
  const bool counted = colon != std::string::npos && colon + 1 < request.gres.size() &&
                       request.gres.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  return counted ? request.gres : fmt::format("{}:{}", request.gres, slots);
}

void prepare_for_allocation(const JobRequest& request, TrialContext& context) {
  const TrialShape shape = shape_of(context.slots);
  context.allocation_nodes = shape.nodes();
  context.has_bound_devices = !gres_of(request, shape).empty();
  context.hostfile.clear();
  if (shape.nodes() > 1) {
    context.hostfile = context.trial_dir / kHostfile;
  } else {
    context.slots = without_hosts(context.slots);
  }
}

std::vector<std::string> sbatch_options(const JobRequest& request, const TrialShape& shape) {
  const int per_node = *std::max_element(shape.node_slots.begin(), shape.node_slots.end());
  const int tasks = spread_of(request, shape) == Spread::srun ? per_node : 1;
  std::vector<std::string> options{fmt::format("--nodes={}", shape.nodes()),
                                   fmt::format("--ntasks-per-node={}", tasks)};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) options.push_back(fmt::format("--{}={}", name, value));
  };
  // The ranks of one task share its processors.
  if (tasks == 1 && per_node > 1) add("cpus-per-task", fmt::to_string(per_node));
  add("gres", gres_of(request, shape));
  add("partition", request.partition);
  add("account", request.account);
  add("qos", request.qos);
  add("constraint", request.constraint);
  const auto minutes = std::chrono::ceil<std::chrono::minutes>(request.trial_timeout + kBeyondTimeout);
  add("time", request.job_time.empty() ? fmt::to_string(minutes.count()) : slurm_time(request.job_time));
  options.insert(options.end(), request.slurm_options.begin(), request.slurm_options.end());
  return options;
}

TrialScript slurm_script(const JobRequest& request, const Launch& launch) {
  const TrialShape shape = shape_of(launch.slots);
  TrialScript script{launch};
  script.slots_per_node = *std::max_element(shape.node_slots.begin(), shape.node_slots.end());
  script.launcher = request.guard;
  script.writes_hostfile = shape.nodes() > 1 && request.launcher == Launcher::deepspeed;
  script.spread_is_ranks = spread_of(request, shape) == Spread::srun;
  return script;
}

void write_job_script(const JobRequest& request, const Launch& launch) {
  const TrialShape shape = shape_of(launch.slots);
  TrialScript script = slurm_script(request, launch);
  const Spread spread = spread_of(request, shape);
  if (spread != Spread::command) {
    const int tasks = spread == Spread::srun ? shape.slots() : shape.nodes();
    script.spread = {"srun",
                     "--overlap",
                     "--mem=0",
                     "--mpi=none",
                     fmt::format("--nodes={}", shape.nodes()),
                     fmt::format("--ntasks={}", tasks),
                     fmt::format("--ntasks-per-node={}", tasks / shape.nodes()),
                     "--kill-on-bad-exit=1"};
  }
  write_trial_script(script);
}

std::string slurm_time(const std::string& text) {
  static const RE2 slurms(R"(\d+|\d+:\d{1,2}|\d+:\d{1,2}:\d{1,2}|\d+-\d{1,2}(:\d{1,2}){0,2})");
  if (RE2::FullMatch(text, slurms) || text == "UNLIMITED") return text;
  try {
    const auto minutes = std::chrono::ceil<std::chrono::minutes>(parse_duration(text));
    if (minutes.count() > 0) return fmt::to_string(minutes.count());
  } catch (const Error&) {
    // The text has neither Slurm's form nor ours; reported below.
  }
  throw Error(
      fmt::format("--job-time {}: not a time limit: write minutes (30), 1:30:00, 2-12 (days-hours) or 90m", text));
}

void check_jobs(const JobRequest& request, const std::vector<TrialShape>& shapes, const Environment& environment) {
  const Environment clean = without_slurm_variables(environment);
  for (const TrialShape& shape : shapes) {
    std::vector<std::string> argv{"sbatch", "--test-only", "--wrap=true"};
    const std::vector<std::string> options = sbatch_options(request, shape);
    argv.insert(argv.end(), options.begin(), options.end());
    const ToolOutput output = SlurmTools::run_now(argv, clean, std::chrono::seconds(30));
    if (output.ok) continue;
    const std::string reason = refusal(output);
    const std::string words = fmt::format("{}", fmt::join(options, " "));
    if (may_pass(output.err + output.out)) {
      throw Error(fmt::format("--runner slurm: the controller does not answer now: {} (sbatch {})", reason, words));
    }
    throw Error(fmt::format("--runner slurm: Slurm refuses a trial's job: {} (sbatch {})", reason, words));
  }
}

}  // namespace dsat::host
