// The scripts of failing_scripts.txt, started by each launcher: whatever it prints around a rank that fails, the reason
// of the trial is the script's.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "host/runner/classify_fixture.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Script {
  std::string name, errors;  // what the rank prints on standard error
  std::vector<std::string> says;
  Outcome outcome = Outcome::failed;
  ExitStatus exit{0, 0};
};

std::vector<Script> read_scripts() {
  std::vector<Script> scripts;
  bool prints = false;
  std::ifstream in(DSAT_FAILING_SCRIPTS);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("== ", 0) == 0) {
      scripts.push_back({line.substr(3), "", {}});
      prints = false;
    } else if (prints) {
      scripts.back().errors += line + "\n";
    } else if (line == "-") {
      prints = true;
    } else if (!scripts.empty()) {
      const size_t blank = line.find(' ');
      const std::string key = line.substr(0, blank), value = line.substr(blank + 1);
      if (key == "says") scripts.back().says.push_back(value);
      if (key == "outcome") scripts.back().outcome = Outcome::out_of_memory;
      if (key == "exit") scripts.back().exit = {std::stoi(value), 0};
      if (key == "signal") scripts.back().exit = {-1, std::stoi(value)};
    }
  }
  return scripts;
}

// What a launcher leaves of a script: both streams, and its own exit.
struct Launched {
  std::string out, errors;
  ExitStatus exit;
};

int code_of(const ExitStatus& exit) { return exit.signal != 0 ? -exit.signal : exit.code; }

std::string signal_name(int signal) {
  return signal == SIGKILL ? "SIGKILL" : signal == SIGSEGV ? "SIGSEGV" : signal == SIGBUS ? "SIGBUS" : "SIGABRT";
}

Launched by_python(const Script& script) { return {"", script.errors, script.exit}; }

// torch from 2.2 on writes the rank before each line of an exception.
std::string with_rank(const Script& script) {
  if (script.errors.rfind("Traceback", 0) != 0) return script.errors;
  std::istringstream in(script.errors);
  std::string text;
  for (std::string line; std::getline(in, line);) text += "[rank1]: " + line + "\n";
  return text;
}

std::string table_of_torchrun(const ExitStatus& exit) {
  const std::string message =
      exit.signal != 0 ? fmt::format("Signal {} ({}) received by PID 4713", exit.signal, signal_name(exit.signal))
                       : "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html";
  const std::string border(60, '='), section(60, '-');
  return fmt::format(
      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n{0}\ntrain.py FAILED\n{1}\nFailures:\n"
      "  <NO_OTHER_FAILURES>\n{1}\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-02-03_04:05:06\n"
      "  host      : node-1\n  rank      : 1 (local_rank: 1)\n  exitcode  : {2} (pid: 4713)\n  error_file: <N/A>\n"
      "  traceback : {3}\n{0}\n",
      border, section, code_of(exit), message);
}

std::string frames_of_torch() {
  return "  File \"/lib/torch/distributed/run.py\", line 909, in run\n    elastic_launch(\n"
         "  File \"/lib/torch/distributed/launcher/api.py\", line 269, in launch_agent\n    raise ChildFailedError(\n";
}

std::string frames_of_torchrun() {
  return "Traceback (most recent call last):\n  File \"/usr/local/bin/torchrun\", line 8, in <module>\n"
         "    sys.exit(main())\n             ^^^^^^\n" +
         frames_of_torch();
}

Launched by_torchrun(const Script& script) {
  const std::string agent = "torch/distributed/elastic/multiprocessing/api.py";
  return {"",
          with_rank(script) +
              fmt::format("W0203 04:05:06.789000 4711 {0}:898] Sending process 4712 closing signal SIGTERM\n"
                          "E0203 04:05:07.123000 4711 {0}:870] failed (exitcode: {1}) local_rank: 1 (pid: 4713) of "
                          "binary: /usr/bin/python3\n",
                          agent, code_of(script.exit)) +
              frames_of_torchrun() + table_of_torchrun(script.exit),
          {1, 0}};
}

// As torch 1.13 and the releases to 2.2 log it; the first line comes before the script's.
Launched by_old_torchrun(const Script& script) {
  const std::string logger = "torch.distributed.elastic.multiprocessing.api";
  return {"",
          "WARNING:torch.distributed.run:\n*****************************************\nSetting OMP_NUM_THREADS "
          "environment variable "
          "for each process to be 1 in default\n*****************************************\n" +
              script.errors +
              fmt::format("WARNING:{0}:Sending process 4712 closing signal SIGTERM\n"
                          "ERROR:{0}:failed (exitcode: {1}) local_rank: 1 (pid: 4713) of binary: /usr/bin/python3\n",
                          logger, code_of(script.exit)) +
              frames_of_torchrun() + table_of_torchrun(script.exit),
          {1, 0}};
}

// All ranks fail alike. The launcher logs to standard output and passes the status on; 256 minus a signal.
Launched by_deepspeed(const Script& script) {
  const int code = code_of(script.exit);
  return {fmt::format("[2026-02-03 04:05:06,789] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 4712\n"
                      "[2026-02-03 04:05:06,790] [ERROR] [launch.py:325:sigkill_handler] ['/usr/bin/python3', '-u', "
                      "'train.py', '--local_rank=1', '--deepspeed_config', 'ds.json'] exits with return code = {}\n",
                      code),
          script.errors + script.errors,
          {code < 0 ? 256 + code : code, 0}};
}

std::string frames_of_accelerate(const std::string& launcher) {
  return "Traceback (most recent call last):\n  File \"/usr/local/bin/accelerate\", line 8, in <module>\n"
         "    sys.exit(main())\n             ^^^^^^\n"
         "  File \"/lib/accelerate/commands/accelerate_cli.py\", line 50, in main\n    args.func(args)\n"
         "  File \"/lib/accelerate/commands/launch.py\", line 1183, in launch_command\n    " +
         launcher + "(args)\n";
}

Launched by_accelerate(const Script& script) {
  const ExitStatus& exit = script.exit;
  const std::string how = exit.signal != 0
                              ? fmt::format("died with <Signals.{}: {}>.", signal_name(exit.signal), exit.signal)
                              : fmt::format("returned non-zero exit status {}.", exit.code);
  return {"",
          script.errors + frames_of_accelerate("simple_launcher") +
              "    raise subprocess.CalledProcessError(returncode=process.returncode, cmd=cmd)\n"
              "subprocess.CalledProcessError: Command '['/usr/bin/python3', 'train.py']' " +
              how + "\n",
          {1, 0}};
}

Launched by_accelerate_with_ranks(const Script& script) {
  Launched launched = by_torchrun(script);
  const std::string frames = frames_of_torchrun();
  launched.errors.replace(launched.errors.find(frames), frames.size(),
                          frames_of_accelerate("deepspeed_launcher") + frames_of_torch());
  return launched;
}

class FailingScripts : public Classify {
 protected:
  void check(const std::string& launcher, Launcher kind, Launched (*launch)(const Script&)) {
    facts_.launcher = kind;
    const std::vector<Script> scripts = read_scripts();
    EXPECT_GE(scripts.size(), 40u);
    for (const Script& script : scripts) {
      const Launched launched = launch(script);
      write_text(dir() / kStdoutFile, launched.out);
      stderr_is(launched.errors);
      facts_.exit = launched.exit;
      const TrialEnd seen = end();
      const std::string what = launcher + ", " + script.name + ": " + seen.reason;
      EXPECT_EQ(seen.outcome, script.outcome) << what;
      for (const std::string& words : script.says) EXPECT_THAT(seen.reason, HasSubstr(words)) << what;
      EXPECT_THAT(seen.reason,
                  AllOf(Not(HasSubstr("====")), Not(HasSubstr("ChildFailedError")), Not(HasSubstr("sys.exit(main())")),
                        Not(HasSubstr("'train.py'")), Not(HasSubstr("OMP_NUM_THREADS")), Not(HasSubstr("****"))))
          << what;
      EXPECT_EQ(seen.infrastructure, script.exit.signal == SIGKILL) << what << ": it may have been killed by chance";
    }
  }
};

TEST_F(FailingScripts, GiveTheirReasonUnderPython) { check("python", Launcher::none, by_python); }

TEST_F(FailingScripts, GiveTheirReasonUnderTorchrun) {
  check("torchrun", Launcher::torchrun, by_torchrun);
  check("torchrun of torch 1.13", Launcher::torchrun, by_old_torchrun);
}

TEST_F(FailingScripts, GiveTheirReasonUnderDeepSpeed) { check("deepspeed", Launcher::deepspeed, by_deepspeed); }

TEST_F(FailingScripts, GiveTheirReasonUnderAccelerate) {
  check("accelerate", Launcher::accelerate, by_accelerate);
  check("accelerate with ranks", Launcher::accelerate, by_accelerate_with_ranks);
}

// The launcher inside a shell script is not seen from outside; what it prints is.
TEST_F(FailingScripts, GiveTheirReasonUnderALauncherThatIsHidden) {
  check("deepspeed in a script", Launcher::none, by_deepspeed);
  check("torchrun in a script", Launcher::none, by_torchrun);
}

}  // namespace
}  // namespace dsat::host
