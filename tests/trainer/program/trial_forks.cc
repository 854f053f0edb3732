// Starts of dsat-trial for the end-to-end tests, each a fork of this process, which has loaded LibTorch.
// A line of stdin is a start: {"arguments": [...], "dir": its folder, "stdout": FILE, "stderr": FILE}. Its end is a
// line of stdout: the exit status, or minus the signal. One start at a time, until stdin ends.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program/dsat_trial.h"

namespace {

void redirect(int descriptor, const std::string& file, int flags) {
  const int opened = ::open(file.c_str(), flags, 0644);
  if (opened < 0 || ::dup2(opened, descriptor) < 0) {
    perror(file.c_str());
    ::_exit(127);
  }
  ::close(opened);
}

[[noreturn]] void become_trial(const nlohmann::json& start) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that waits no longer kills this process's parent
  const auto dir = start.at("dir").get<std::string>();
  if (::chdir(dir.c_str()) != 0) {
    perror(dir.c_str());
    ::_exit(127);
  }
  redirect(0, "/dev/null", O_RDONLY);
  redirect(1, start.at("stdout"), O_WRONLY | O_CREAT | O_TRUNC);
  redirect(2, start.at("stderr"), O_WRONLY | O_CREAT | O_TRUNC);
  std::exit(dsat::trainer::dsat_trial(start.at("arguments").get<std::vector<std::string>>()));
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto start = nlohmann::json::parse(line);
    const pid_t pid = ::fork();
    if (pid == 0) become_trial(start);
    int status = 0;
    if (pid < 0 || ::waitpid(pid, &status, 0) != pid) {
      perror("trial_forks");
      return 1;
    }
    std::cout << (WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status)) << std::endl;
  }
}
