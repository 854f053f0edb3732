// `scontrol show job -d` prints a line for each group of equal nodes, with their processors and GPUs.
#include "slurm/allocation.h"

#include <fmt/format.h>
#include <re2/re2.h>
#include <time.h>

#include <algorithm>

#include "dsat/base/numbers.h"
#include "dsat/base/utf8.h"
#include "dsat/error.h"
#include "slurm/slurm_tools.h"

namespace dsat::host {

namespace {

using SystemTime = std::chrono::system_clock::time_point;

std::string match_of(const std::string& text, const char* pattern) {
  std::string match;
  RE2::PartialMatch(text, RE2(pattern, RE2::Latin1), &match);
  return match;
}

std::optional<SystemTime> local_time(const std::string& text) {
  tm parts{};
  if (strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return std::nullopt;
  parts.tm_isdst = -1;
  return std::chrono::system_clock::from_time_t(mktime(&parts));
}

std::string show_job(const std::string& job, const Environment& environment) {
  const ToolOutput output = SlurmTools::run_now({"scontrol", "show", "job", "-d", job}, environment);
  if (output.ok) return output.out;
  throw Error(fmt::format("the allocation (job {}) cannot be read: {}; is it over?", job, output.last_word()));
}

// Returns name and address of the nodes of a list, in the order in which Slurm numbers the tasks on them.
std::vector<AllocationNode> ask_for_nodes(const std::string& list, const Environment& environment) {
  const ToolOutput output = SlurmTools::run_now({"scontrol", "show", "--oneliner", "node", list}, environment);
  std::vector<AllocationNode> nodes;
  for (const std::string& line : printable_lines(output.out)) {
    AllocationNode node;
    node.name = match_of(line, R"(NodeName=(\S+))");
    node.address = match_of(line, R"(NodeAddr=(\S+))");
    if (!node.name.empty()) nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace

std::vector<std::string> expand_node_list(const std::string& list, const Environment& environment) {
  if (list.find('[') == std::string::npos && list.find(',') == std::string::npos) return {list};
  const ToolOutput output = SlurmTools::run_now({"scontrol", "show", "hostnames", list}, environment);
  return printable_lines(output.out);
}

const AllocationNode* Allocation::find(const std::string& node) const {
  const auto it = std::find_if(nodes.begin(), nodes.end(), [&](const AllocationNode& n) { return n.name == node; });
  return it == nodes.end() ? nullptr : &*it;
}

std::vector<Slot> Allocation::slots() const {
  std::vector<Slot> slots;
  for (const AllocationNode& node : nodes) {
    const int count = node.gpus > 0 ? node.gpus : tasks_per_node;
    for (int i = 0; i < count; ++i) slots.push_back({fmt::to_string(i), i, std::nullopt, node.name});
  }
  return slots;
}

bool is_in_allocation(const Environment& environment) {
  return !get_variable(environment, "SLURM_JOB_ID").value_or("").empty();
}

Allocation parse_allocation(const std::string& text) {
  Allocation allocation;
  allocation.job = match_of(text, R"(JobId=(\d+))");
  allocation.end = local_time(match_of(text, R"(EndTime=(\S+))"));
  allocation.node_list = match_of(text, R"(\n\s+NodeList=(\S+))");
  const int nodes = parse_count(match_of(text, R"(NumNodes=(\d+))")).value_or(1);
  const int tasks = parse_count(match_of(text, R"(NumTasks=(\d+))")).value_or(1);
  allocation.tasks_per_node = std::max(1, tasks / std::max(1, nodes));
  static const RE2 group(R"(\n\s+Nodes=(\S+) CPU_IDs=\S+([^\n]*))", RE2::Latin1);
  static const RE2 gpus(R"(gpu(?::[^:(,\s]+)?:(\d+)\()", RE2::Latin1);
  AllocationNode node;
  for (re2::StringPiece rest = text, devices; RE2::FindAndConsume(&rest, group, &node.name, &devices);) {
    node.gpus = 0;
    for (std::string count; RE2::FindAndConsume(&devices, gpus, &count);) {
      node.gpus += parse_count(count).value_or(0);
    }
    allocation.nodes.push_back(node);
  }
  return allocation;
}

std::optional<SystemTime> allocation_end(const std::string& job, const Environment& environment) {
  return parse_allocation(show_job(job, without_slurm_variables(environment))).end;
}

bool is_allocation_over(const std::string& job, const Environment& environment) {
  const ToolOutput output =
      SlurmTools::run_now({"scontrol", "show", "job", job}, environment, std::chrono::seconds(10));
  if (!output.ok) return output.err.find("Invalid job id") != std::string::npos;
  const std::string state = match_of(output.out, R"(JobState=(\S+))");
  return state != "RUNNING" && state != "SUSPENDED" && state != "CONFIGURING" && state != "RESIZING";
}

Allocation find_allocation(const Environment& environment) {
  if (!is_in_allocation(environment)) {
    throw Error(
        "--runner pilot runs trials in a Slurm allocation, but this program is not in one (no SLURM_JOB_ID): get one "
        "with salloc or sbatch, or use --runner slurm for one job per trial");
  }
  require_slurm({"srun", "scontrol", "scancel"}, environment, "--runner pilot");
  const Environment clean = without_slurm_variables(environment);
  const ToolOutput version = SlurmTools::run_now({"srun", "--version"}, clean);
  if (parse_slurm_version(version.out) < std::make_pair(20, 11)) {
    throw Error(
        fmt::format("--runner pilot needs Slurm 20.11 or later for steps that share a node, and srun says '{}': "
                    "use --runner slurm",
                    version.last_word()));
  }
  Allocation allocation = parse_allocation(show_job(*get_variable(environment, "SLURM_JOB_ID"), clean));
  std::vector<AllocationNode> nodes = ask_for_nodes(allocation.node_list, clean);
  if (nodes.empty()) {
    throw Error(fmt::format("the allocation (job {}) has no nodes now: is it running?", allocation.job));
  }
  for (const AllocationNode& group : allocation.nodes) {
    for (const std::string& name : expand_node_list(group.name, clean)) {
      for (AllocationNode& node : nodes) {
        if (node.name == name) node.gpus = group.gpus;
      }
    }
  }
  allocation.nodes = std::move(nodes);
  return allocation;
}

}  // namespace dsat::host
