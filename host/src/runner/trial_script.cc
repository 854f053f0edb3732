// Writes run.sh from fixed parts; each word of the command is quoted. Reads the two notes, which are small JSON
// objects.
#include "runner/trial_script.h"

#include <fmt/format.h>

#include <exception>
#include <map>

#include "command/command_template.h"
#include "dsat/base/files.h"
#include "dsat/base/shell.h"
#include "dsat/config/json_numbers.h"
#include "runner/trial_files.h"

namespace dsat::host {

namespace {

namespace fs = std::filesystem;

// Quotes a word of a command, and replaces kFirstNode by the shell variable with the first node's name.
std::string word(const std::string& text) {
  const size_t at = text.find(kFirstNode);
  if (at == std::string::npos) return shell_quote(text);
  const std::string before = text.substr(0, at), after = text.substr(at + std::string(kFirstNode).size());
  return (before.empty() ? "" : shell_quote(before)) + "\"$MASTER_ADDR\"" + (after.empty() ? "" : word(after));
}

std::string words(const Argv& argv) {
  std::string line;
  for (const std::string& text : argv) line += (line.empty() ? "" : " ") + word(text);
  return line;
}

// Returns "1,3" for each node: the places of its slots among the devices that the scheduler shows there, from 1.
std::map<std::string, std::string> picks_by_node(const std::vector<Slot>& slots) {
  std::map<std::string, std::string> picks;
  for (const Slot& slot : slots) {
    std::string& list = picks[slot.host];
    list += fmt::format("{}{}", list.empty() ? "" : ",", slot.ordinal.value_or(0) + 1);
  }
  return picks;
}

// Returns a shell function that limits the variables of visible devices to this node's slots.
std::string pick_function(const TrialScript& script) {
  if (!script.has_bound_devices) return "pick_devices() { :; }\n";
  std::string text = "pick_devices() {\n  case \"${SLURMD_NODENAME-}\" in\n";
  for (const auto& [node, places] : picks_by_node(script.launch.slots)) {
    text += fmt::format("    {}) places={} ;;\n", shell_quote(node), places);
  }
  return text + R"sh(    *) return 0 ;;
  esac
  for name in CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES ZE_AFFINITY_MASK; do
    eval "all=\${$name-}"
    [ -z "$all" ] || export "$name=$(printf %s "$all" | cut -d, -f "$places")"
  done
}
)sh";
}

// Sets the place of a rank that srun started.
constexpr const char* kRankFunction = R"sh(become_rank() {
  export RANK="$SLURM_PROCID" LOCAL_RANK="$SLURM_LOCALID" WORLD_SIZE="$SLURM_NTASKS"
}
)sh";

// srun starts the script with these arguments on the nodes of a job.
constexpr const char* kSpreadPart = R"sh(if [ "${1-}" = rank ]; then
  shift
  pick_devices
  become_rank
  exec "$@"
fi
if [ "${1-}" = node ]; then
  shift
  pick_devices
  exec "$@"
fi
)sh";

// "$1" adds the fields that only the end note has.
constexpr const char* kNoteFunction = R"sh(note() {
  printf '{"attempt": %s, "job": "%s", "step": "%s", "host": "%s", "pid": %s, "time": "%s"%s}\n' \
    "$attempt" "$job" "$step" "$host" $$ \
    "$(date -u +%Y-%m-%dT%H:%M:%S.%6NZ)" "$1"
}
)sh";

// Counts the processes that the kernel killed for lack of memory, as local_engine.cc does. In a cgroup of version 2
// the count is for the step of Slurm with all its tasks; otherwise for a cgroup of version 1, or the machine. 0:
// unknown.
constexpr const char* kOomFunction = R"sh(oom_kills() {
  group=$(sed -n 's,\(/step_[^/]*\)/.*,\1,; s/^0:://p' /proc/self/cgroup)
  old_group=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
  cat "/sys/fs/cgroup$group/memory.events" "/sys/fs/cgroup/memory$old_group/memory.oom_control" /proc/vmstat |
    sed -n 's/^oom_kill //p' | head -n 1 | grep . || echo 0
} 2>/dev/null
)sh";

std::string hostfile_part(const TrialScript& script) {
  if (!script.writes_hostfile) return "";
  const std::string file = shell_quote((script.launch.folder / kHostfile).string());
  std::string nodes = "$(scontrol show hostnames \"$SLURM_JOB_NODELIST\")";
  if (!script.nodes.empty()) nodes = shell_join(script.nodes);
  return fmt::format("for node in {}; do echo \"$node slots={}\"; done >{}\n", nodes, script.slots_per_node, file);
}

// Runs the command below dsat-launch if this node has it, so that all processes of the command end with it, in any
// session.
std::string command_part(const TrialScript& script) {
  std::string line;
  if (!script.spread.empty()) {
    line += fmt::format("{} sh {} {} ", words(script.spread), word((script.launch.folder / kScriptFile).string()),
                        script.spread_is_ranks ? "rank" : "node");
  }
  line += words(script.launch.argv);
  if (script.launcher.empty()) return line + " &\n";
  const std::string launcher = word(script.launcher.string());
  return fmt::format("if [ -x {0} ]; then\n  {0} $$ {1} &\nelse\n  {1} &\nfi\n", launcher, line);
}

// Sets the address of the first node, where all ranks meet.
std::string address_part(const TrialScript& script) {
  if (!script.first_address.empty()) return fmt::format("export MASTER_ADDR={}\n", shell_quote(script.first_address));
  if (script.spread.empty() && !script.writes_hostfile) return "";
  return "MASTER_ADDR=$(hostname)\nexport MASTER_ADDR\n";
}

// Returns the part of the script before the command.
std::string preparation(const TrialScript& script) {
  const Launch& launch = script.launch;
  const auto in_folder = [&](const char* name) { return shell_quote((launch.folder / name).string()); };
  std::string text;
  for (const std::string& variable : launch.added) {
    const size_t equals = variable.find('=');
    text += fmt::format("export {}={}\n", variable.substr(0, equals), shell_quote(variable.substr(equals + 1)));
  }
  text += address_part(script);
  // Since 22.05 srun does not use this variable by itself.
  if (!script.spread.empty()) {
    text += "[ -z \"${SLURM_CPUS_PER_TASK-}\" ] || export SRUN_CPUS_PER_TASK=\"$SLURM_CPUS_PER_TASK\"\n";
  }
  text += fmt::format("if $notes; then\n  rm -f {0}\n  note '' >{1}.part && mv -f {1}.part {1}\nfi\n",
                      in_folder(kEndedFile), in_folder(kStartedFile));
  if (!script.is_task) text += fmt::format("{{ echo; cat {}; }} >&3\nexec 3>&-\n", in_folder(kStartedFile));
  text += fmt::format("cd {} || exit 125\n", shell_quote(launch.cwd.string()));
  text += hostfile_part(script);
  if (script.spread.empty()) text += "pick_devices\n";
  if (script.is_task && script.spread_is_ranks) text += "become_rank\n";
  return text;
}

std::string text_of(const TrialScript& script) {
  const Launch& launch = script.launch;
  const auto in_folder = [&](const char* name) { return shell_quote((launch.folder / name).string()); };
  std::string text = fmt::format("#!/bin/sh\n# Trial {}, attempt {}: runs on {}.\n", launch.id, launch.attempt,
                                 script.is_task ? "all of its nodes" : "the first of its nodes");
  text += pick_function(script) + kRankFunction;
  if (!script.spread.empty()) text += kSpreadPart;
  text +=
      fmt::format("attempt={} job=${{SLURM_JOB_ID-}} step=${{SLURM_STEP_ID-}} host=${{SLURMD_NODENAME-$(hostname)}}\n",
                  launch.attempt) +
      kNoteFunction + kOomFunction;
  if (script.is_task) {
    text += "notes=false; [ \"$SLURM_PROCID\" != 0 ] || notes=true\n";
  } else {
    text += fmt::format("notes=true\nexec 3>&1 </dev/null >{} 2>{}\n", in_folder(kStdoutFile), in_folder(kStderrFile));
  }
  text += preparation(script);
  text += "oom_kills_before=$(oom_kills)\n";
  // A shell that waits in the foreground runs its trap only after the command has ended, so the command runs in the
  // background. The trap is set after the command starts: a forked shell keeps its parent's traps until it runs the
  // command, and would lose a signal. A signal before the trap ends the shell, and thereby the command.
  text += "signalled=false\n" + command_part(script) + "child=$!\n";
  text += "trap 'signalled=true; kill -TERM \"$child\" 2>/dev/null' TERM INT HUP\nwait \"$child\"; status=$?\n";
  text += "while kill -0 \"$child\" 2>/dev/null; do wait \"$child\"; status=$?; done\n";
  text += fmt::format(
      "if $notes; then\n  kills=$(($(oom_kills) - oom_kills_before))\n"
      "  note \", \\\"exit_status\\\": $status, \\\"signalled\\\": $signalled, \\\"oom_kills\\\": $kills\" >{0}.part "
      "&& "
      "mv -f {0}.part {0}\nfi\nexit \"$status\"\n",
      in_folder(kEndedFile));
  return text;
}

}  // namespace

void write_trial_script(const TrialScript& script) {
  write_file_atomically(script.launch.folder / kScriptFile, text_of(script), Durability::renamed);
}

std::optional<ScriptNote> parse_note(const std::string& text, uint32_t attempt) {
  try {
    const Json json = config::parse(text, "a note");
    if (json.at("attempt") != attempt) return std::nullopt;
    ScriptNote note;
    note.job = json.at("job").get<std::string>();
    note.step = json.at("step").get<std::string>();
    note.host = json.at("host").get<std::string>();
    note.pid = config::whole_number<int>(json.at("pid"));
    note.time = json.at("time").get<std::string>();
    note.exit_status = config::whole_number_at<int>(json, "exit_status").value_or(-1);
    note.was_signalled = json.value("signalled", false);
    note.kernel_oom_kills = config::whole_number_at<int>(json, "oom_kills").value_or(0) > 0;
    return note;
  } catch (const std::exception&) {
    return std::nullopt;  // incomplete, or another program's: as if there were no note yet
  }
}

std::optional<ScriptNote> read_note(const fs::path& folder, const char* file, uint32_t attempt) {
  const FileText text = try_read_file(folder / file, 64 * 1024);
  return text.ok() ? parse_note(text.bytes, attempt) : std::nullopt;
}

}  // namespace dsat::host
