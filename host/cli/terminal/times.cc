// Reads the fields; timegm() counts the days. A journal's times have six decimals.
#include "terminal/times.h"

#include <ctime>

namespace dsat::cli {

int64_t microseconds_of(const std::string& time) {
  std::tm fields{};
  long fraction = 0;
  if (std::sscanf(time.c_str(), "%d-%d-%dT%d:%d:%d.%6ldZ", &fields.tm_year, &fields.tm_mon, &fields.tm_mday,
                  &fields.tm_hour, &fields.tm_min, &fields.tm_sec, &fraction) != 7) {
    return 0;
  }
  fields.tm_year -= 1900;
  fields.tm_mon -= 1;
  return int64_t{timegm(&fields)} * 1'000'000 + fraction;
}

}  // namespace dsat::cli
