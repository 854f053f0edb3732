#include "settings/environment.h"

#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "dsat/base/units.h"
#include "dsat/error.h"

namespace dsat::trainer {
namespace {

std::optional<int64_t> read(const char* name, int64_t low, int64_t high) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  int64_t value = 0;
  const char* const end = text + std::strlen(text);
  const auto [at, code] = std::from_chars(text, end, value);
  if (code == std::errc() && at == end && value >= low && value <= high) return value;
  throw Error(std::string(name) + "=" + text + ": expected an integer from " + std::to_string(low) + " to " +
              std::to_string(high));
}

// For the stacks and buffers of some ten threads; models come on top.
constexpr uint64_t kLeastRoomBytes = 512'000'000;

}  // namespace

Group find_group(int64_t ranks) {
  Group group;
  if (const char* address = std::getenv("MASTER_ADDR"); address != nullptr && *address != '\0') group.address = address;
  group.port = static_cast<uint16_t>(read("MASTER_PORT", 1, 65535).value_or(0));
  const auto rank = read("RANK", 0, 1023);
  if (!rank) {
    group.world_size = static_cast<int>(ranks == 0 ? 1 : ranks);
    return group;
  }
  const auto world_size = read("WORLD_SIZE", 1, 1024);
  if (!world_size) throw Error("RANK is set but WORLD_SIZE is not; set both, or neither and use --ranks");
  if (*rank >= *world_size) {
    throw Error("RANK=" + std::to_string(*rank) + " is not below WORLD_SIZE=" + std::to_string(*world_size));
  }
  if (ranks != 0 && ranks != *world_size) {
    throw Error("--ranks " + std::to_string(ranks) + " contradicts WORLD_SIZE=" + std::to_string(*world_size) +
                "; leave --ranks out where RANK is set");
  }
  if (*world_size > 1 && group.port == 0) throw Error("RANK is set but MASTER_PORT is not; set it for all ranks");
  group.rank = static_cast<int>(*rank);
  group.world_size = static_cast<int>(*world_size);
  return group;
}

int local_rank_of(int rank) {
  if (!read("RANK", 0, 1023)) return rank;
  return static_cast<int>(read("LOCAL_RANK", 0, 1023).value_or(rank));
}

void require_address_space() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  uint64_t mapped_pages = 0;
  std::ifstream("/proc/self/statm") >> mapped_pages;
  require_address_space(limit.rlim_cur, mapped_pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)));
}

void require_address_space(std::optional<uint64_t> limit_bytes, uint64_t mapped_bytes) {
  if (!limit_bytes || *limit_bytes >= mapped_bytes + kLeastRoomBytes) return;
  const auto size = [](uint64_t bytes) { return format_size(static_cast<double>(bytes)); };
  throw Error("ulimit -v is " + size(*limit_bytes) + ": LibTorch alone maps " + size(mapped_bytes) +
              ", and a rank needs " + size(kLeastRoomBytes) + " more; raise it, or use --device-memory for a budget");
}

}  // namespace dsat::trainer
