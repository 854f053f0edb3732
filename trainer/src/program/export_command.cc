// Takes two names and prints one line about what was written.
#include "program/export_command.h"

#include <fmt/format.h>

#include <cstdio>

#include "dsat/error.h"
#include "weights/checkpoint_export.h"

namespace dsat::trainer {
namespace {

constexpr const char* kUsage =
    "usage: dsat-trial export CHECKPOINT OUT.pt|OUT.safetensors\n\n"
    "Writes the weights of a checkpoint, in fp32, for torch.load or a reader of safetensors. CHECKPOINT: the folder "
    "of\n"
    "one, or of --checkpoint-dir or --checkpoints, for the latest there.\n";

}  // namespace

void export_command(const std::vector<std::string>& args) {
  for (const std::string& arg : args) {
    if (arg == "--help" || arg == "-h") {
      std::fputs(kUsage, stdout);
      return;
    }
    if (arg.rfind('-', 0) == 0) throw Error(fmt::format("export: unknown option {}; dsat-trial export --help", arg));
  }
  if (args.size() != 2) throw Error("export needs two names: dsat-trial export CHECKPOINT OUT.pt|OUT.safetensors");
  const ExportedCheckpoint exported = export_checkpoint(args[0], args[1]);
  if (exported.lacks_buffers) {
    std::fputs("dsat-trial: warning: the checkpoint does not describe its buffers: they are left out; save it again\n",
               stderr);
  }
  std::fputs(fmt::format("{}: {} tensors of {}\n", args[1], exported.tensors, exported.folder).c_str(), stdout);
}

}  // namespace dsat::trainer
