// A datagram is one frame that is admitted by itself, however its message is split into slices.
#include <gtest/gtest.h>

#include <vector>

#include "print/print.h"
#include "wire/admit.h"
#include "wire/control.h"

namespace cluster::wire {
namespace {

std::vector<std::byte> joined(const DatagramHeader& head, std::span<const ConstBytes> payload) {
  std::vector<std::byte> frame(head.bytes().begin(), head.bytes().end());
  for (const ConstBytes piece : payload) frame.insert(frame.end(), piece.begin(), piece.end());
  return frame;
}

TEST(Datagram, IsAdmittedAndCarriesItsMessage) {
  const std::vector<std::byte> bytes(11, std::byte{0x5A});
  const ConstBytes whole = bytes;
  const ConstBytes pieces[] = {whole.first(3), {}, whole.subspan(3)};
  Segment segment;
  segment.flags = segment_flag::kData;
  segment.length = 11;
  segment.data = 0xDA7A;
  const DatagramHeader head(segment, pieces);
  EXPECT_EQ(head.bytes().size(), kDatagramHeaderMax);
  const std::vector<std::byte> frame = joined(head, pieces);
  FrameView view;
  ASSERT_EQ(admit(frame, view), Refusal::none);
  EXPECT_EQ(view.kind, FrameKind::datagram);
  EXPECT_EQ(view.length, frame.size());
  EXPECT_EQ(view.session, 0u);
  Segment read;
  ASSERT_EQ(decode(view.segments, read), view.segments.size() - 11);
  EXPECT_EQ(read.length, 11u);
  EXPECT_EQ(read.data, 0xDA7Au);
  EXPECT_NE(print(view).find("datagram"), std::string::npos);
}

TEST(Datagram, MayBeEmptyAndIsRefusedWhenDamaged) {
  const DatagramHeader head(Segment{}, {});
  std::vector<std::byte> frame = joined(head, {});
  FrameView view;
  EXPECT_EQ(admit(frame, view), Refusal::none);
  frame.back() ^= std::byte{1};
  EXPECT_EQ(admit(frame, view), Refusal::checksum);
  frame.pop_back();
  EXPECT_EQ(admit(frame, view), Refusal::malformed);
}

}  // namespace
}  // namespace cluster::wire
