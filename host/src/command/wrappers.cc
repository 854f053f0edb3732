// Lists options by their number of values, from the documentation of srun, Open MPI, MPICH and Intel MPI. Open MPI and
// MPICH accept long names after one dash too.
#include "command/wrappers.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>

namespace dsat::host {

namespace {

bool is_among(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The switches of srun and mpirun.
bool is_wrapper_switch(std::string_view option) {
  return is_among(
      option,
      {"-l", "-u", "-v", "-q", "-Q", "-s", "-O", "-K", "-k", "-X", "-E", "-Z", "-h", "-V", "--label", "--unbuffered",
       "--verbose", "--quiet", "--overcommit", "--exclusive", "--pty", "--kill-on-bad-exit", "--no-kill", "--overlap",
       "--exact", "--contiguous", "--preserve-env", "--disable-status", "--multi-prog", "--test-only",
       "--use-min-nodes", "--spread-job", "--hold", "--no-allocate", "--no-requeue", "--requeue", "--reboot", "--async",
       "--oversubscribe", "--interactive", "--external", "--stepmgr", "--quit-on-interrupt",
       // srun, with a value only after "="
       "--propagate", "--immediate", "--resv-ports", "--nice", "--bcast", "--compress", "--send-libs", "--x11",
       // pyxis, a plugin of srun
       "--no-container-mount-home", "--container-mount-home", "--container-writable", "--container-readonly",
       "--container-remap-root", "--no-container-remap-root", "--no-container-entrypoint", "--container-entrypoint",
       // Open MPI
       "--nooversubscribe", "--no-oversubscribe", "--allow-run-as-root", "--tag-output", "--timestamp-output",
       "--merge-stderr-to-stdout", "--xml", "--report-bindings", "--display-map", "--display-allocation",
       "--display-devel-map", "--display-topo", "--bind-to-core", "--bind-to-socket", "--bind-to-none", "--bycore",
       "--bynode", "--byslot", "--bysocket", "--pernode", "--nolocal", "--novm", "--do-launch", "--do-not-launch",
       "--do-not-resolve", "--enable-recovery", "--disable-recovery", "--continuous", "--get-stack-traces",
       "--leave-session-attached", "--use-hwthread-cpus", "--use-regexp", "--debug", "--debug-daemons", "--debug-devel",
       "--version", "--help",
       // MPICH and Intel MPI
       "--prepend-rank", "--genvall", "--genvnone", "--envall", "--envnone", "--info", "--print-rank-map",
       "--print-all-exitcodes", "--disable-auto-cleanup", "--disable-hostname-propagation", "--ordered-output"});
}

// NAME and VALUE are two words.
bool takes_two_values(std::string_view option) {
  return is_among(
      option, {"--mca", "--gmca", "--omca", "--prtemca", "--pmixmca", "--genv", "--env", "--gpmixmca", "--gprtemca"});
}

// Options of srun and mpirun whose value may have a program's name: a job, a partition, a host, a variable.
bool takes_a_name(std::string_view option) {
  return is_among(
      option,
      {"-A", "-C", "-D", "-e", "-i", "-J", "-L", "-M", "-o", "-p", "-w", "-x", "--account", "--begin", "--bb",
       "--chdir", "--clusters", "--cluster-constraint", "--comment", "--constraint", "--container", "--container-id",
       "--container-image", "--container-mounts", "--container-name", "--container-save", "--container-workdir",
       "--container-env", "--dependency", "--distribution", "--epilog", "--error", "--exclude", "--export",
       "--export-file", "--gres", "--input", "--job-name", "--licenses", "--mail-user", "--mcs-label", "--mpi",
       "--network", "--nodefile", "--nodelist", "--output", "--partition", "--prefer", "--profile", "--prolog", "--qos",
       "--reservation", "--task-epilog", "--task-prolog", "--tmp", "--tres-bind", "--tres-per-task", "--wckey",
       // Open MPI, MPICH and Intel MPI
       "-H", "-f", "-host", "--host", "-hosts", "--hosts", "--hostfile", "--machinefile", "-wdir", "--wdir", "-wd",
       "--prefix", "--path", "--app", "--launcher", "--envlist", "--genvlist", "--output-filename", "--tune"});
}

// Whether the word is the started program, and so no value of an unknown option.
bool is_program(std::string_view word) {
  const std::string_view name = word.substr(word.rfind('/') + 1);
  const auto ends_in = [&](std::string_view ending) {
    return name.size() > ending.size() && name.substr(name.size() - ending.size()) == ending;
  };
  return is_among(name, {"deepspeed", "ds", "torchrun", "accelerate", "accelerate-launch", "env", "bash", "sh"}) ||
         name.substr(0, 6) == "python" || ends_in(".py") || ends_in(".sh");
}

// Recognises "-n4", "-N2".
bool has_attached_number(const std::string& option) {
  return option[1] != '-' && option.size() > 2 && std::isdigit(static_cast<unsigned char>(option[2])) != 0;
}

// Returns the number of words of the option at `i`, including its name.
size_t words_of_option(const Argv& argv, size_t wrapper, size_t i) {
  const std::string& option = argv[i];
  // -q is srun's quality of service, but mpirun's "quiet".
  if (option == "-q" && is_among(argv[wrapper].substr(argv[wrapper].rfind('/') + 1), {"srun"})) return 2;
  if (option.find('=') != std::string::npos || has_attached_number(option)) return 1;
  const std::string name = option[1] != '-' && option.size() > 2 ? "-" + option : option;
  if (is_wrapper_switch(name)) return 1;
  if (takes_two_values(name)) return 3;
  if (i + 1 == argv.size()) return 1;
  // An unknown option takes a value, unless the next word is an option or a program.
  const std::string& next = argv[i + 1];
  const bool is_number = next.size() > 1 && std::isdigit(static_cast<unsigned char>(next[1])) != 0;
  if (next.size() > 1 && next[0] == '-' && !is_number) return 1;
  return is_program(next) && !takes_a_name(option) && !takes_a_name(name) ? 1 : 2;
}

}  // namespace

bool is_wrapper(std::string_view program) {
  return is_among(program, {"srun", "mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun"});
}

size_t end_of_wrapper_options(const Argv& argv, size_t wrapper) {
  size_t i = wrapper + 1;
  while (i < argv.size() && argv[i].size() > 1 && argv[i][0] == '-') i += words_of_option(argv, wrapper, i);
  return std::min(i, argv.size());
}

}  // namespace dsat::host
