// Tunes from a C++ program, two studies at once: each in a thread, with its events and its result as JSON.
#include <dsat/dsat.h>

#include <iostream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

using Json = nlohmann::json;

static std::mutex printing;

static void on_event(void* name, const char* text) {
  const Json event = Json::parse(text);
  if (event["event"] != "best") return;
  const std::lock_guard lock(printing);
  std::cout << static_cast<const char*>(name) << ": trial " << event["best"]["trial"] << " is the best so far\n";
}

static void tune(const char* searcher, const std::string& dir) {
  const Json options{{"command", {"sh", EXAMPLE_DIR "/train.sh", "--deepspeed_config", EXAMPLE_DIR "/ds_config.json"}},
                     {"searcher", searcher}, {"max-trials", 6}, {"metric", "throughput"}, {"slots", 1},
                     {"output-dir", dir}};
  char* error = nullptr;
  const std::unique_ptr<dsat_tuning, void (*)(dsat_tuning*)> tuning(dsat_tuning_create(options.dump().c_str(), &error),
                                                                   dsat_tuning_destroy);
  if (tuning) dsat_tuning_run(tuning.get(), on_event, const_cast<char*>(searcher));
  const std::lock_guard lock(printing);
  std::cout << searcher << ": " << (tuning ? dsat_tuning_result(tuning.get()) : error) << "\n";
  dsat_text_free(error);
}

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "usage: embed OUTPUT_DIR OUTPUT_DIR\n", 2;
  std::thread other(tune, "random", argv[1]);
  tune("asha", argv[2]);
  other.join();
}
