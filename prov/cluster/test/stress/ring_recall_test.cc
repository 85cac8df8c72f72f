// A writer that takes segments back while the reader takes them: each is had by exactly one side, in order.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "shm/ring_reader.h"
#include "shm/ring_writer.h"
#include "support/yield_processor.h"
#include "unit/shm/ring_memory.h"

namespace cluster::shm {
namespace {

#ifdef CLUSTER_SANITIZED
constexpr std::uint32_t kSegments = 50'000;
#else
constexpr std::uint32_t kSegments = 100'000;
#endif

/// Takes what comes, in batches of one to four, and notes each in `had`.
void read_all(RingReader& reader, std::vector<std::uint8_t>& had) {
  std::uint32_t seen = 0;
  for (std::uint32_t turn = 0; seen < kSegments; ++turn) {
    if (!reader.begin_batch()) {
      test::yield_processor();
      continue;
    }
    wire::Segment segment;
    ConstBytes payload;
    std::uint32_t count = 0;
    for (; count <= turn % 4 && reader.peek(segment, payload); ++count) {
      std::uint32_t number;
      std::memcpy(&number, payload.data(), sizeof number);
      if (segment.kind == wire::SegmentKind::eager) had[number] += 1;
      if (segment.kind == wire::SegmentKind::eager && number != seen) had[number] += 100;
      reader.pop();
      ++seen;
    }
    reader.end_batch();
    if (count == 0) test::yield_processor();
  }
}

TEST(RingRecall, EachSegmentIsHadOnce) {
  RingMemory memory;
  RingWriter writer(memory.bytes(), memory.geometry);
  RingReader reader(memory.bytes(), memory.geometry);
  std::vector<std::uint8_t> read(kSegments), taken_back(kSegments);
  std::thread other([&] { read_all(reader, read); });
  std::uint32_t posted = 0, holds = 0, refusals = 0;
  while (posted < kSegments) {
    for (std::uint32_t burst = posted % 7 + 1; burst > 0 && posted < kSegments; --burst) {
      const ConstBytes bytes = as_bytes(&posted, sizeof posted);
      if (!writer.post({.length = sizeof posted}, {{&bytes, 1}, 0, sizeof posted})) break;
      ++posted;
    }
    if (!writer.hold()) {
      ++refusals;
    } else {
      ++holds;
      const std::uint32_t left = writer.next() - writer.taken();
      for (std::uint32_t i = left; i > left / 2; --i) {  // the older half
        const std::uint32_t number = posted - i;
        if (taken_back[number] != 0) continue;
        ++taken_back[number];
        writer.withdraw(writer.next() - i);
      }
    }
    writer.resume();
    if (posted % 3 == 0) test::yield_processor();
  }
  other.join();
  std::uint32_t by_reader = 0;
  for (std::uint32_t i = 0; i < kSegments; ++i) {
    ASSERT_EQ(read[i] + taken_back[i], 1) << "segment " << i;
    by_reader += read[i];
  }
  EXPECT_GT(by_reader, 0u);
  EXPECT_LT(by_reader, kSegments);
  EXPECT_GT(holds, 0u);
  RecordProperty("holds", static_cast<int>(holds));
  RecordProperty("given way", static_cast<int>(refusals));
}

}  // namespace
}  // namespace cluster::shm
