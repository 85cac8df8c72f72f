// The admission of frames: any bytes, and frames of each kind with any blocks, whose checksum is right. What
// is admitted is decoded as every component behind it does.
#include "fuzz/hostile_input.h"
#include "wire/print.h"

namespace {

using namespace cluster;

void read(ConstBytes bytes) {
  while (!bytes.empty()) {
    wire::FrameView view;
    if (wire::admit(bytes, view) != wire::Refusal::none) return;
    if (view.length == 0 || view.length > bytes.size()) __builtin_trap();
    static_cast<void>(wire::print(view));
    for (ConstBytes rest = view.segments; !rest.empty();) {
      wire::Segment segment;
      const std::size_t header = wire::decode(rest, segment);
      if (header == 0 || segment.length > rest.size() - header) break;
      static_cast<void>(wire::print(segment));
      std::array<std::byte, wire::kSegmentHeaderMax> again;
      if (wire::encode(segment, again.data()) != header) __builtin_trap();
      if (std::memcmp(again.data(), rest.data(), header) != 0) __builtin_trap();
      rest = rest.subspan(header + segment.length);
    }
    bytes = bytes.subspan(view.length);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const bool fix_header = (data[0] & 1) != 0;
  // A copy of exactly its size, so that the sanitizer detects a read beyond it.
  std::vector<std::byte> frame(size - 1);
  if (!frame.empty()) std::memcpy(frame.data(), data + 1, frame.size());
  if (fix_header && frame.size() >= sizeof(wire::FrameHeader) && frame.size() <= wire::kFrameMax) {
    frame[0] = std::byte{wire::kMagic};
    frame[1] = std::byte{wire::kVersion};
    const wire::Le16 length = static_cast<std::uint16_t>(frame.size());
    std::memcpy(frame.data() + 4, &length, sizeof length);
    fuzz::set_checksum(frame);
  }
  read(frame);
  return 0;
}
