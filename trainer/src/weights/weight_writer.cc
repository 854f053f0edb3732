// Chooses the format, and looks for room before anything is written.
#include "weights/weight_writer.h"

#include <fmt/format.h>

#include <filesystem>

#include "dsat/base/files.h"
#include "dsat/error.h"

namespace dsat::trainer {
namespace {

namespace fs = std::filesystem;

bool is_safetensors(const std::string& path) { return fs::path(path).extension() == ".safetensors"; }

// Both formats align each tensor and describe it in some text.
uint64_t bytes_of(const std::vector<WeightSpec>& specs) {
  constexpr uint64_t kAround = 512;
  uint64_t bytes = kAround;
  for (const WeightSpec& spec : specs) bytes += (spec.bytes() + kAround) * (1 + spec.aliases.size());
  return bytes;
}

}  // namespace

void check_weights_name(const std::string& path) {
  const std::string end = fs::path(path).extension();
  if (end == ".pt" || end == ".safetensors") return;
  throw Error(fmt::format("{}: the name of a file of weights ends with .pt or .safetensors", path));
}

std::unique_ptr<WeightWriter> open_weight_writer(const std::string& path, const std::vector<WeightSpec>& specs) {
  check_weights_name(path);
  const fs::path parent = fs::path(path).parent_path();
  const uint64_t needed = bytes_of(specs);
  if (const auto free = free_bytes(parent.empty() ? "." : parent); free && *free < needed) {
    throw Error(DSAT_INTERNAL,
                fmt::format("cannot write {}: it takes {} bytes, and {} are free there", path, needed, *free));
  }
  return is_safetensors(path) ? write_safetensors(path, specs) : write_torch_file(path, specs);
}

}  // namespace dsat::trainer
