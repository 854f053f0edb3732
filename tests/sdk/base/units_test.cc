// Sizes and durations: exact reading, refusals, three digits for people.
#include "dsat/base/units.h"

#include <limits>

#include "support/error_of.h"

namespace dsat {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST(ParseSize, KnowsDecimalAndBinaryUnitsInAnyCase) {
  EXPECT_EQ(parse_size("4096"), 4096u);
  EXPECT_EQ(parse_size("12 B"), 12u);
  EXPECT_EQ(parse_size("1kB"), 1000u);
  EXPECT_EQ(parse_size("1K"), 1000u);
  EXPECT_EQ(parse_size("3m"), 3000000u);
  EXPECT_EQ(parse_size("80G"), 80000000000u);
  EXPECT_EQ(parse_size("80gb"), 80000000000u);
  EXPECT_EQ(parse_size("2T"), 2000000000000u);
  EXPECT_EQ(parse_size("1KiB"), 1024u);
  EXPECT_EQ(parse_size("512MiB"), 512u * 1024 * 1024);
  EXPECT_EQ(parse_size("512mib"), 512u * 1024 * 1024);
  EXPECT_EQ(parse_size("1GiB"), 1073741824u);
  EXPECT_EQ(parse_size("1TIB"), 1099511627776u);
  EXPECT_EQ(parse_size(" 1.5 GB "), 1500000000u);
  EXPECT_EQ(parse_size("0"), 0u);
}

TEST(ParseSize, RoundsDownExactly) {
  EXPECT_EQ(parse_size("1.9"), 1u);
  EXPECT_EQ(parse_size("0.0019kB"), 1u);
  EXPECT_EQ(parse_size("0.1KiB"), 102u);
  EXPECT_EQ(parse_size("1.1GB"), 1100000000u) << "a double would lose a byte";
  EXPECT_EQ(parse_size("0.999999999999999999999999999999kB"), 999u);
}

TEST(ParseSize, RefusesWhatIsNoSize) {
  for (const char* text : {"", " ", "GB", "-1", "+1", "1e3", "1,5GB", ".5GB", "5.GB", "1.2.3", "0x10", "1 2", "12XB",
                           "1GiBs", "1Gi", "nan", "inf", "½GB", "1 G B"}) {
    EXPECT_THAT(error_of([&] { parse_size(text); }), HasSubstr("'" + std::string(text) + "' is not"));
  }
}

TEST(ParseSize, RefusesWhatLeaves64Bits) {
  EXPECT_EQ(parse_size("9223372036854775807"), static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
  for (const char* text :
       {"9223372036854775808", "18446744073709551616", "99999999999999999999999", "9223373TB", "8388608TiB"}) {
    EXPECT_THAT(error_of([&] { parse_size(text); }), HasSubstr("too large")) << text;
  }
}

TEST(ParseDuration, KnowsSecondsMinutesAndHours) {
  EXPECT_EQ(parse_duration("90"), milliseconds(90000));
  EXPECT_EQ(parse_duration("90s"), milliseconds(90000));
  EXPECT_EQ(parse_duration("15m"), milliseconds(900000));
  EXPECT_EQ(parse_duration("2h"), milliseconds(7200000));
  EXPECT_EQ(parse_duration("1.5 H"), milliseconds(5400000));
  EXPECT_EQ(parse_duration("0.0005"), milliseconds(0));
}

TEST(ParseDuration, RefusesWhatIsNoDuration) {
  for (const char* text : {"", "m", "-5s", "1e3", "10d", "1h30m", "5 minutes", "1.s", "forever"}) {
    EXPECT_THAT(error_of([&] { parse_duration(text); }), HasSubstr("not a duration")) << text;
  }
  EXPECT_THAT(error_of([] { parse_duration("87601h"); }), HasSubstr("too large"));
  EXPECT_THAT(error_of([] { parse_duration("99999999999999999999"); }), HasSubstr("too large"));
}

TEST(FormatSize, ShowsThreeDigits) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(12), "12 B");
  EXPECT_EQ(format_size(640e3), "640 kB");
  EXPECT_EQ(format_size(1.234e9), "1.23 GB");
  EXPECT_EQ(format_size(31.44e9), "31.4 GB");
  EXPECT_EQ(format_size(120e9), "120 GB");
  EXPECT_EQ(format_size(-2.5e6), "-2.50 MB");
  EXPECT_EQ(format_size(std::numeric_limits<double>::infinity()), "unknown");
}

TEST(FormatSize, CarriesIntoTheNextUnit) {
  EXPECT_EQ(format_size(999), "999 B");
  EXPECT_EQ(format_size(999.6e3), "1.00 MB");
  EXPECT_EQ(format_size(9.996e6), "10.0 MB");
  EXPECT_EQ(format_size(99.96e6), "100 MB");
}

TEST(FormatDuration, FitsItsUnitToTheLength) {
  EXPECT_EQ(format_duration(milliseconds(0)), "0 ms");
  EXPECT_EQ(format_duration(milliseconds(85)), "85 ms");
  EXPECT_EQ(format_duration(milliseconds(12340)), "12.3 s");
  EXPECT_EQ(format_duration(milliseconds(59999)), "1m 0s");
  EXPECT_EQ(format_duration(milliseconds(312000)), "5m 12s");
  EXPECT_EQ(format_duration(milliseconds(3599800)), "1h 0m");
  EXPECT_EQ(format_duration(milliseconds(7500000)), "2h 5m");
  EXPECT_EQ(format_duration(milliseconds(-85)), "-85 ms");
}

}  // namespace
}  // namespace dsat
