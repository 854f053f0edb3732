// dsat-trial: trains a built-in model in this process or in ranks that it starts.
#include <cstdio>
#include <string>
#include <vector>

#include "dsat/error.h"
#include "options.h"
#include "training.h"

int main(int argc, char** argv) {
  namespace trainer = dsat::trainer;
  trainer::Options options;
  try {
    options = trainer::parse_options(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const dsat::Error& error) {
    std::fprintf(stderr, "dsat-trial: %s\n", error.what());
    return 2;
  }
  if (options.help) {
    std::fputs(trainer::kHelp, stdout);
    return 0;
  }
  trainer::run(options, [&](trainer::World& world) { trainer::train(options, world); });
}
