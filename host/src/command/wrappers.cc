// Tells options by how many values they take, from what srun, Open MPI, MPICH and Intel MPI document. Open MPI and
// MPICH take long names behind one dash, too.
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

// Of srun and of mpirun.
bool is_wrapper_switch(std::string_view option) {
  return is_among(
      option,
      {"-l", "-u", "-v", "-q", "-Q", "-s", "-O", "-K", "-k", "-X", "-E", "-Z", "-h", "-V", "--label", "--unbuffered",
       "--verbose", "--quiet", "--overcommit", "--exclusive", "--pty", "--kill-on-bad-exit", "--no-kill", "--overlap",
       "--exact", "--contiguous", "--preserve-env", "--disable-status", "--multi-prog", "--test-only",
       "--use-min-nodes", "--spread-job",
       // Open MPI
       "--oversubscribe", "--nooversubscribe", "--no-oversubscribe", "--allow-run-as-root", "--tag-output",
       "--timestamp-output", "--merge-stderr-to-stdout", "--xml", "--report-bindings", "--display-map",
       "--display-allocation", "--display-devel-map", "--display-topo", "--bind-to-core", "--bind-to-socket",
       "--bind-to-none", "--bycore", "--bynode", "--byslot", "--bysocket", "--pernode", "--nolocal", "--novm",
       "--do-launch", "--do-not-launch", "--do-not-resolve", "--enable-recovery", "--disable-recovery", "--continuous",
       "--get-stack-traces", "--leave-session-attached", "--use-hwthread-cpus", "--use-regexp", "--debug",
       "--debug-daemons", "--debug-devel", "--version", "--help",
       // MPICH and Intel MPI
       "--prepend-rank", "--genvall", "--genvnone", "--envall", "--envnone", "--info", "--print-rank-map",
       "--print-all-exitcodes", "--disable-auto-cleanup", "--disable-hostname-propagation", "--ordered-output"});
}

// NAME and VALUE are two words.
bool takes_two_values(std::string_view option) {
  return is_among(
      option, {"--mca", "--gmca", "--omca", "--prtemca", "--pmixmca", "--genv", "--env", "--gpmixmca", "--gprtemca"});
}

// "-n4", "-N2".
bool has_attached_number(const std::string& option) {
  return option[1] != '-' && option.size() > 2 && std::isdigit(static_cast<unsigned char>(option[2])) != 0;
}

// How many words the option at `i` takes, its own name counted.
size_t words_of_option(const Argv& argv, size_t i) {
  const std::string& option = argv[i];
  if (option.find('=') != std::string::npos || has_attached_number(option)) return 1;
  const std::string name = option[1] != '-' && option.size() > 2 ? "-" + option : option;
  if (is_wrapper_switch(name)) return 1;
  if (takes_two_values(name)) return 3;
  // One that is not known here takes a value, but no option is one.
  const bool option_follows = i + 1 < argv.size() && argv[i + 1].size() > 1 && argv[i + 1][0] == '-' &&
                              std::isdigit(static_cast<unsigned char>(argv[i + 1][1])) == 0;
  return option_follows ? 1 : 2;
}

}  // namespace

bool is_wrapper(std::string_view program) {
  return is_among(program, {"srun", "mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun"});
}

size_t end_of_wrapper_options(const Argv& argv, size_t wrapper) {
  size_t i = wrapper + 1;
  while (i < argv.size() && argv[i].size() > 1 && argv[i][0] == '-') i += words_of_option(argv, i);
  return std::min(i, argv.size());
}

}  // namespace dsat::host
