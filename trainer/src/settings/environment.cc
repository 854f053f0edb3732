// Reads RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and LOCAL_RANK, and the limit on address space.
// Contradictions with --ranks are refused before a process is started.
#include "settings/environment.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "dsat/base/numbers.h"
#include "dsat/base/units.h"
#include "dsat/error.h"

namespace dsat::trainer {
namespace {

std::optional<int64_t> read(const char* name, int64_t low, int64_t high) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  if (const auto value = parse_integer(text, low, high)) return value;
  throw Error(fmt::format("{}={}: expected an integer from {} to {}", name, text, low, high));
}

// For the stacks and buffers of some ten threads; models come on top.
constexpr uint64_t kLeastRoomBytes = 512'000'000;

}  // namespace

Group find_group(int64_t ranks) {
  Group group;
  group.port = static_cast<uint16_t>(read("MASTER_PORT", 1, 65535).value_or(0));
  const auto rank = read("RANK", 0, 1023);
  if (!rank) {
    group.world_size = static_cast<int>(ranks == 0 ? 1 : ranks);
    return group;  // its ranks meet on this machine, wherever the variables of another program point to
  }
  if (const char* address = std::getenv("MASTER_ADDR"); address != nullptr && *address != '\0') group.address = address;
  const auto world_size = read("WORLD_SIZE", 1, 1024);
  if (!world_size) throw Error("RANK is set but WORLD_SIZE is not; set both, or neither and use --ranks");
  if (*rank >= *world_size) {
    throw Error(fmt::format("RANK={} is not below WORLD_SIZE={}", *rank, *world_size));
  }
  if (ranks != 0 && ranks != *world_size) {
    throw Error(
        fmt::format("--ranks {} contradicts WORLD_SIZE={}; leave --ranks out where RANK is set", ranks, *world_size));
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
  throw Error(
      fmt::format("ulimit -v is {}: LibTorch alone maps {}, and a rank needs {} more; raise it, or use --device-memory "
                  "for a budget",
                  size(*limit_bytes), size(mapped_bytes), size(kLeastRoomBytes)));
}

}  // namespace dsat::trainer
