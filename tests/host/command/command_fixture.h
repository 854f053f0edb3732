// A folder with launchers that do nothing, and what becomes of a user's command there.
#ifndef DSAT_TESTS_HOST_COMMAND_COMMAND_FIXTURE_H_
#define DSAT_TESTS_HOST_COMMAND_COMMAND_FIXTURE_H_

#include <string>
#include <utility>

#include "command/command_template.h"
#include "support/error_of.h"
#include "support/temp_dir.h"

namespace dsat::host {

class Command : public TempDirTest {
 protected:
  Command() {
    for (const char* name : {"python3", "deepspeed", "torchrun", "env", "srun", "accelerate"}) {
      write_program(dir() / name, "#!/bin/sh\n");
    }
    request_.cwd = dir();
    request_.environment = {"PATH=" + dir().string()};
  }

  CommandTemplate parse(Argv argv) {
    request_.argv = std::move(argv);
    return CommandTemplate(request_);
  }
  std::string why_not(Argv argv) {
    return error_of([&] { parse(std::move(argv)); });
  }
  Argv render(Argv argv, const Json& config = Json::object()) {
    return parse(std::move(argv)).render({"/t/ds_config.json", "/t", {{"0", 0, {}}, {"2", 2, {}}}, 29500, config});
  }

  CommandRequest request_;
};

}  // namespace dsat::host

#endif  // DSAT_TESTS_HOST_COMMAND_COMMAND_FIXTURE_H_
