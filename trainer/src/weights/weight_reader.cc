// torch.save writes a zip archive; safetensors begin with the length of a JSON text.
#include "weights/weight_reader.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "dsat/error.h"

namespace dsat::trainer {

std::unique_ptr<WeightReader> open_weight_reader(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char begin[9] = {};
  if (!file.read(begin, sizeof begin)) {
    throw Error(fmt::format("cannot read {}: {}", path, file.is_open() ? "it is too short" : std::strerror(errno)));
  }
  if (std::memcmp(begin, "PK\x03\x04", 4) == 0) return read_torch_file(path);
  if (begin[8] == '{') return read_safetensors(path);
  throw Error(fmt::format(
      "{} has no weights: expected safetensors, or what torch.save(model.state_dict(), FILE) writes", path));
}

}  // namespace dsat::trainer
