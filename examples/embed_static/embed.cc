// A program that embeds the search: runs a study, receives its events, stops it from another thread.
#include <dsat/host/study.h>

#include <cstdio>
#include <future>
#include <thread>

namespace host = dsat::host;

// Prints what happens, and tells when a number of trials have ended.
class Printer : public host::Observer {
 public:
  explicit Printer(int trials) : left_(trials) {}
  void on_trial_ended(const host::TrialRecord& trial) override {
    std::printf("trial %llu: %s: %s\n", static_cast<unsigned long long>(trial.id), trial.note.c_str(),
                trial.outcome ? to_string(*trial.outcome) : "open");
    if (--left_ == 0) tell();
  }
  void on_best(const host::BestRecord& best) override {
    std::printf("best so far: trial %llu, %g\n", static_cast<unsigned long long>(best.trial), best.metric);
  }
  void tell() {
    if (!std::exchange(has_enough_, true)) enough_.set_value();
  }
  void wait() { enough_.get_future().wait(); }

 private:
  int left_;
  bool has_enough_ = false;
  std::promise<void> enough_;
};

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: embed OUTPUT_DIR TRIALS_BEFORE_STOP\n"), 2;
  host::StudyOptions options;
  options.command = {"sh", EXAMPLE_DIR "/train.sh", "--deepspeed_config", EXAMPLE_DIR "/ds_config.json"};
  options.searcher.plugin = PLUGIN_DIR "/libasha.so";
  options.profiler.plugin = PLUGIN_DIR "/libprofiler.so";
  options.launcher = LAUNCHER;
  options.plugin_host = PLUGIN_HOST;
  options.output_dir = argv[1];
  options.metric = "throughput";
  options.slots = 1;

  auto study = host::Study::create(std::move(options));
  if (!study.ok()) return std::fprintf(stderr, "%s\n", study.status().message().c_str()), 2;

  Printer printer(std::atoi(argv[2]));
  std::thread stopper([&] {
    printer.wait();
    study.value()->request_stop();  // legal from any thread
  });
  const host::StudyResult result = study.value()->run(printer);
  std::printf("%s: %s\n", to_string(result.status), result.reason.c_str());
  printer.tell();  // should it have ended first
  stopper.join();
  return result.status == host::StudyStatus::failed ? 1 : 0;
}
