// The numbers in out-of-memory messages, by the generations of torch and by device.
#include "outputs/oom_numbers.h"

#include <gmock/gmock.h>

namespace dsat::host {
namespace {

constexpr double kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

struct Message {
  const char* text;
  double wanted, allocated;  // 0: the message does not say
  double reserved = 0, total = 0;
};

void expect_number(const std::optional<double>& number, double expected, const char* what, const char* text) {
  if (expected == 0) {
    EXPECT_TRUE(!number || *number == 0) << what << " of " << text;
    return;
  }
  ASSERT_TRUE(number) << what << " of " << text;
  EXPECT_NEAR(*number, expected, 2) << what << " of " << text;
}

TEST(OomNumbers, ReadsEveryGenerationOfTorchAndEveryDevice) {
  const Message messages[] = {
      {"CUDA out of memory. Tried to allocate 26.00 MiB (GPU 0; 1024.00 MiB total capacity; 435.61 MiB already "
       "allocated; 24.17 MiB free; 26.39 MiB cached)",
       26 * kMiB, 435.61 * kMiB, 26.39 * kMiB, 1024 * kMiB},
      {"CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 15.90 GiB total capacity; 13.13 GiB already "
       "allocated; 415.88 MiB free; 14.80 GiB reserved in total by PyTorch)",
       512 * kMiB, 13.13 * kGiB, 14.80 * kGiB, 15.90 * kGiB},
      {"CUDA out of memory. Tried to allocate 224.00 MiB. GPU 0 has a total capacty of 14.75 GiB of which 11.06 MiB is "
       "free. Process 3258 has 14.73 GiB memory in use. Of the allocated memory 14.04 GiB is allocated by PyTorch, and "
       "509.85 MiB is reserved by PyTorch but unallocated.",
       224 * kMiB, 14.04 * kGiB, 14.04 * kGiB + 509.85 * kMiB, 14.75 * kGiB},
      {"CUDA out of memory. Tried to allocate 2.00 KiB. GPU 11 has a total capacity of 139.72 GiB of which 11.06 MiB "
       "is "
       "free. Including non-PyTorch memory, this process has 139.60 GiB memory in use. Of the allocated memory 132.90 "
       "GiB is allocated by PyTorch, and 194.87 MiB is reserved by PyTorch but unallocated.",
       2 * kKiB, 132.90 * kGiB, 132.90 * kGiB + 194.87 * kMiB, 139.72 * kGiB},
      {"Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 15.16 GiB\n"
       "Requested               : 512.00 KiB\nDevice limit            : 15.99 GiB",
       512 * kKiB, 15.16 * kGiB, 0, 15.99 * kGiB},
      {"XPU out of memory. Tried to allocate 8.11 GiB. GPU 0 has a total capacity of 16.54 GiB of which 16.54 GiB is "
       "free. 8.27 GiB allowed; Of the allocated memory 1.00 GiB is allocated by PyTorch",
       8.11 * kGiB, 1 * kGiB, 0, 8.27 * kGiB},
      {"MPS backend out of memory (MPS allocated: 9.57 GiB, other allocations: 17.35 GiB, max allowed: 27.20 GiB). "
       "Tried "
       "to allocate 292.50 MiB on private pool.",
       292.5 * kMiB, 9.57 * kGiB, 0, 27.20 * kGiB},
      {"NPU out of memory. Tried to allocate 5.03 GiB (NPU 3; 60.96 GiB total capacity; 49.47 GiB already allocated; "
       "49.47 GiB current active; 1.32 GiB free; 57.55 GiB reserved in total by PyTorch)",
       5.03 * kGiB, 49.47 * kGiB, 57.55 * kGiB, 60.96 * kGiB},
      {"HIP out of memory. Tried to allocate 16.00 GiB. GPU 0 has a total capacity of 15.24 GiB of which 15.09 GiB is "
       "free. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by PyTorch but "
       "unallocated.",
       16 * kGiB, 0, 0, 15.24 * kGiB},
      {"OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated so far: 1,024 bytes, limit set to: "
       "2,048 bytes).",
       8 * kGiB, 1024, 0, 2048},
      {"dsat-trial: OutOfMemoryError: out of memory: tried to allocate 12.0 MB; in use 90.1 MB of 100 MB (rank 0)",
       12e6, 90.1e6, 0, 100e6},
      {"DefaultCPUAllocator: can't allocate memory: you tried to allocate 8000000000 bytes. Error code 12", 8e9, 0},
      {"MODULE:PT_DEVMEM Allocation failed for size::939524096 (896)MB", 939524096, 0},
      {"RESOURCE_EXHAUSTED: Out of memory while trying to allocate 11.95MiB.", 11.95 * kMiB, 0},
  };
  for (const Message& message : messages) {
    const OomNumbers numbers = read_oom_numbers(message.text);
    expect_number(numbers.wanted, message.wanted, "wanted", message.text);
    expect_number(numbers.allocated, message.allocated, "allocated", message.text);
    expect_number(numbers.reserved, message.reserved, "reserved", message.text);
    expect_number(numbers.total, message.total, "total", message.text);
  }
}

TEST(OomNumbers, ThePeakWouldHaveBeenAboveWhatWasThereAndWhatWasWanted) {
  EXPECT_EQ(peak_above_bytes({5, 10, 12, 14}), 15u);
  EXPECT_EQ(peak_above_bytes({5, 0, {}, {}}), 5u) << "nothing was allocated yet";
  EXPECT_FALSE(peak_above_bytes({5, {}, {}, {}})) << "unknown is not nothing";
  EXPECT_FALSE(peak_above_bytes({{}, 10, {}, {}}));
  EXPECT_FALSE(peak_above_bytes({0, 10, {}, {}}));
}

TEST(OomNumbers, NumbersThatContradictEachOtherGiveNoBound) {
  EXPECT_FALSE(peak_above_bytes({5, 20, {}, 14})) << "more than the device has";
  EXPECT_FALSE(peak_above_bytes({5, 20, 10, {}})) << "more than was reserved";
  EXPECT_TRUE(peak_above_bytes({5, 20.1, 20, {}})) << "two digits are rounded";
}

TEST(OomNumbers, MoreThanAnyDeviceHasIsNoRequest) {
  for (const char* text : {"Tried to allocate more than 1EB memory.", "Tried to allocate 9000000.00 TiB. GPU 0"}) {
    EXPECT_TRUE(asks_for_the_impossible(text)) << text;
  }
  for (const char* text : {"Tried to allocate 1024.00 GiB. GPU 7", "out of memory", "", "Tried to allocate 2.00 KiB",
                           "Tried to allocate 99999999999999999999999999999999 GiB"}) {
    EXPECT_FALSE(asks_for_the_impossible(text)) << text;
  }
}

TEST(OomNumbers, ASmallRequestThatIsRefusedWithMuchFreeIsDoubtful) {
  const auto is_doubtful = [](const char* text) { return is_refused_in_plenty(read_oom_numbers(text)); };
  EXPECT_TRUE(
      is_doubtful("CUDA out of memory. Tried to allocate 214.00 MiB. GPU 0 has a total capacity of 23.65 GiB of "
                  "which 20.06 GiB is free. Of the allocated memory 2.90 GiB is allocated by PyTorch"));
  EXPECT_TRUE(
      is_doubtful("CUDA out of memory. Tried to allocate 214.00 MiB (GPU 0; 23.65 GiB total capacity; 2.00 GiB "
                  "already allocated; 20.06 GiB free; 2.50 GiB reserved in total by PyTorch)"));
  EXPECT_FALSE(
      is_doubtful("CUDA out of memory. Tried to allocate 214.00 MiB. GPU 0 has a total capacity of 23.65 GiB of "
                  "which 11.06 MiB is free. Of the allocated memory 22.90 GiB is allocated by PyTorch"));
  EXPECT_FALSE(
      is_doubtful("XPU out of memory. Tried to allocate 0.20 GiB. GPU 0 has a total capacity of 16.54 GiB of "
                  "which 8.54 GiB is free. 8.27 GiB allowed; Of the allocated memory 8.20 GiB is allocated by "
                  "PyTorch"))
      << "a limit was set below the device's memory";
  EXPECT_FALSE(
      is_doubtful("CUDA out of memory. Tried to allocate 16.00 GiB. GPU 0 has a total capacity of 24.00 GiB of "
                  "which 15.09 GiB is free."));
  EXPECT_FALSE(is_doubtful("out of memory"));
}

TEST(OomNumbers, NonsenseIsNoNumber) {
  for (const char* text :
       {"", "Tried to allocate", "Tried to allocate more than 1EB memory.", "Tried to allocate 1.2.3 GiB",
        "Tried to allocate 99999999999 GiB (GPU 0; nan GiB total capacity; -1 GiB already allocated)",
        "Tried to allocate 1e308 GiB; inf already allocated"}) {
    EXPECT_FALSE(peak_above_bytes(read_oom_numbers(text))) << text;
  }
}

}  // namespace
}  // namespace dsat::host
