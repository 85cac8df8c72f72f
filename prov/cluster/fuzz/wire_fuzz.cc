// The admission of frames: any bytes, and frames of each kind with any blocks, whose checksum is right. What
// is admitted is decoded as every component behind it does. The same bytes also go to the gate for connection
// messages.
#include <algorithm>
#include <vector>

#include "connection/connection_message.h"
#include "fuzz/hostile_input.h"
#include "print/print.h"
#include "wire/admit.h"

namespace {

using namespace cluster;

/// What is taken for a run reads frame by frame as the same.
void read_run(ConstBytes bytes, const wire::FrameView& first) {
  wire::RunView run;
  if (!wire::match_run(bytes, first, run)) return;
  std::vector<std::byte> place(run.size());
  if (!wire::check_run(run, place)) return;
  if (run.count < 2 || run.count * run.frame_length > bytes.size()) __builtin_trap();
  for (std::uint32_t i = 0; i < run.count; ++i) {
    wire::FrameView view;
    if (wire::admit(bytes.subspan(i * run.frame_length), view) != wire::Refusal::none) __builtin_trap();
    const bool expected = view.length == run.frame_length && view.sequence == first.sequence + i &&
                          view.transmission == first.transmission + i && view.session == first.session &&
                          view.flags == first.flags && view.ack == first.ack &&
                          view.largest_acked == first.largest_acked;
    wire::Segment segment;
    const std::size_t header = wire::decode(view.segments, segment);
    const bool continues = segment.kind == run.segment.kind && segment.length == run.segment.length &&
                           segment.peer_id == run.segment.peer_id &&
                           (segment.kind != wire::SegmentKind::bulk ||
                            segment.offset == run.segment.offset + i * segment.length);
    const ConstBytes payload = run.payload(i);
    const bool in_place =
        payload.data() == view.segments.data() + header && payload.size() == view.segments.size() - header;
    const bool stored = std::equal(payload.begin(), payload.end(), &place[i * payload.size()]);
    if (header == 0 || !expected || !continues || !in_place || !stored) __builtin_trap();
  }
}

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
    read_run(bytes, view);
    bytes = bytes.subspan(view.length);
  }
}

/// The address of a message `taken` survives another encoding.
void read_taker(ConstBytes bytes) {
  const SocketAddress taker = connection::decode_address(bytes, {});
  if (taker.empty()) return;
  if (connection::decode_address(connection::encode_address(taker), {}) != taker) __builtin_trap();
}

/// What the gate takes is encoded to the same bytes.
void read_connection_message(ConstBytes bytes) {
  connection::Message message;
  if (!connection::decode(bytes, message)) return;
  read_taker(message.data);
  const connection::MessageBytes again = connection::encode(message);
  if (!std::ranges::equal(again.span(), bytes)) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const bool fix_header = (data[0] & 1) != 0;
  // A copy of exactly its size, so that the sanitizer detects a read beyond it.
  std::vector<std::byte> frame(size - 1);
  if (!frame.empty()) std::memcpy(frame.data(), data + 1, frame.size());
  read_connection_message(frame);
  if (fix_header && frame.size() >= sizeof(wire::FrameHeader) && frame.size() <= wire::kFrameMax) {
    frame[0] = std::byte{wire::kMagic};
    frame[1] = std::byte{wire::kVersion};
    const wire::Le16 length = static_cast<std::uint16_t>(frame.size());
    std::memcpy(frame.data() + 4, &length, sizeof length);
    fuzz::set_checksum(frame);
  }
  read(frame);
  if (!fix_header || frame.size() < sizeof(wire::FrameHeader)) return 0;
  // The same with frames behind it that may continue it.
  const std::vector<std::byte> first = frame;
  for (std::uint32_t i = 1; i < 4; ++i) {
    std::vector<std::byte> next = first;
    wire::FrameHeader header;
    std::memcpy(&header, next.data(), sizeof header);
    header.sequence = header.sequence + i;
    header.transmission = header.transmission + ((data[0] & 2) != 0 ? i : 1);
    std::memcpy(next.data(), &header, sizeof header);
    wire::Segment segment;
    const ConstBytes behind = ConstBytes(next).subspan(sizeof header);
    if (wire::decode(behind, segment) != 0) {
      segment.offset += i * std::uint64_t{segment.length};
      wire::encode(segment, next.data() + sizeof header);
    }
    if ((data[0] & 4) != 0) next.back() ^= std::byte{1};
    fuzz::set_checksum(next);
    frame.insert(frame.end(), next.begin(), next.end());
  }
  read(frame);
  return 0;
}
