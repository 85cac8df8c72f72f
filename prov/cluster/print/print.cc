#include "print/print.h"

#include <cinttypes>
#include <cstdio>

namespace cluster::wire {
namespace {

const char* name_of(FrameKind kind) {
  switch (kind) {
    case FrameKind::flow: return "flow";
    case FrameKind::reset: return "reset";
    case FrameKind::fin: return "fin";
    case FrameKind::keep_alive: return "keep_alive";
    case FrameKind::alive: return "alive";
    case FrameKind::datagram: return "datagram";
    case FrameKind::path_challenge: return "path_challenge";
    case FrameKind::path_response: return "path_response";
    case FrameKind::association_request: return "association_request";
    case FrameKind::association_response: return "association_response";
    case FrameKind::association_unknown: return "association_unknown";
    case FrameKind::group: return "group";
    case FrameKind::group_announce: return "group_announce";
    case FrameKind::sibling_request: return "sibling_request";
    case FrameKind::sibling_response: return "sibling_response";
    case FrameKind::relay_request: return "relay_request";
    case FrameKind::relay_offer: return "relay_offer";
    case FrameKind::relay_join: return "relay_join";
    case FrameKind::relay_joined: return "relay_joined";
  }
  return "unknown";
}

const char* name_of(SegmentKind kind) {
  switch (kind) {
    case SegmentKind::eager: return "eager";
    case SegmentKind::eager_first: return "eager_first";
    case SegmentKind::eager_next: return "eager_next";
    case SegmentKind::announce: return "announce";
    case SegmentKind::pull: return "pull";
    case SegmentKind::bulk: return "bulk";
    case SegmentKind::done: return "done";
    case SegmentKind::credit: return "credit";
    case SegmentKind::close: return "close";
    case SegmentKind::write: return "write";
    case SegmentKind::write_next: return "write_next";
    case SegmentKind::write_announce: return "write_announce";
    case SegmentKind::read: return "read";
    case SegmentKind::failed: return "failed";
    case SegmentKind::read_failed: return "read_failed";
    case SegmentKind::padding: return "padding";
    case SegmentKind::placed: return "placed";
    case SegmentKind::atomic: return "atomic";
    case SegmentKind::fetched: return "fetched";
    case SegmentKind::group_join: return "group_join";
    case SegmentKind::group_start: return "group_start";
    case SegmentKind::group_status: return "group_status";
    case SegmentKind::group_nak: return "group_nak";
    case SegmentKind::group_ask: return "group_ask";
    case SegmentKind::group_repair: return "group_repair";
    case SegmentKind::group_leave: return "group_leave";
    case SegmentKind::group_end: return "group_end";
    case SegmentKind::expose: return "expose";
    case SegmentKind::exposed: return "exposed";
    case SegmentKind::expose_region: return "expose_region";
    case SegmentKind::device_over: return "device_over";
    case SegmentKind::queue_pair: return "queue_pair";
    case SegmentKind::new_queue_pair: return "new_queue_pair";
  }
  return "unknown";
}

std::string number(const char* label, std::uint64_t value) {
  return std::string(" ") + label + " " + std::to_string(value);
}

std::string hexadecimal(const char* label, std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%" PRIx64, value);
  return std::string(" ") + label + " " + text;
}

std::string print_queue_pairs(const Opening& opening, ConstBytes rails) {
  std::string text;
  for (const VerbsAddress& each : read_verbs(opening, rails))
    text += " " + each.address.text() + number("of", each.frame_max);
  return text;
}

std::string print_opening(const Opening& opening, ConstBytes rails) {
  const SocketAddress sibling = read_sibling(opening, rails);
  return " [opening " + opening.name.text() + hexadecimal("epoch", opening.epoch) +
         hexadecimal("session", opening.session) + number("frame", opening.frame_max) +
         number("window", opening.window) + (sibling.empty() ? "" : " sibling " + sibling.text()) +
         print_queue_pairs(opening, rails) + "]";
}

std::string print_ranges(const Ack& ack) {
  std::string text = " [has";
  for (std::size_t i = 0; i < ack.count; ++i) {
    text +=
        " " + std::to_string(ack.ranges[i].first.value) + "-" + std::to_string((ack.ranges[i].end).value - 1);
  }
  return text + number("spurious", ack.spurious) + "]";
}

std::string print_reset(const ResetBlock& reset) {
  const bool stale = reset.reason == static_cast<std::uint8_t>(ResetReason::stale_epoch);
  const bool foreign = reset.reason == static_cast<std::uint8_t>(ResetReason::foreign_source);
  return std::string(stale     ? " stale epoch"
                     : foreign ? " foreign source"
                               : " unknown session") +
         hexadecimal("session", reset.session) + number("seq", reset.sequence) +
         number("tx", reset.transmission) + (stale ? hexadecimal("known epoch", reset.epoch) : "");
}

/// Counts the segments as far as they are valid.
std::string print_segments(ConstBytes bytes) {
  std::size_t count = 0;
  const std::size_t size = bytes.size();
  while (!bytes.empty()) {
    Segment segment;
    const std::size_t header = decode(bytes, segment);
    if (header == 0 || bytes.size() - header < segment.length) {
      return " " + std::to_string(count) + " segments and invalid bytes in " + std::to_string(size) +
             " bytes";
    }
    bytes = bytes.subspan(header + segment.length);
    ++count;
  }
  return " " + std::to_string(count) + (count == 1 ? " segment" : " segments");
}

}  // namespace

std::string print(const FrameView& frame) {
  std::string text = name_of(frame.kind);
  if (frame.kind == FrameKind::reset) return text + print_reset(frame.reset);
  if (frame.kind == FrameKind::keep_alive || frame.kind == FrameKind::alive ||
      frame.kind == FrameKind::path_challenge || frame.kind == FrameKind::path_response) {
    return text + number("nonce", frame.sequence.value);
  }
  if (frame.kind == FrameKind::sibling_request || frame.kind == FrameKind::sibling_response) {
    return text + " of " + read_rails(frame.rails).front().text() +
           hexadecimal("session", frame.sequence.value);
  }
  text += hexadecimal("to", frame.session);
  if (frame.sequenced() || frame.kind == FrameKind::fin) text += number("seq", frame.sequence.value);
  if (frame.sequenced()) text += number("tx", frame.transmission.value);
  if (frame.acknowledges()) {
    text += number("ack", frame.ack.value) + number("largest_acked", frame.largest_acked.value) +
            number("age", frame.ack_delay_ns) + " ns";
  }
  if (frame.in_order()) text += " ordered";
  if (frame.ack_now()) text += " ack-now";
  if (frame.has_opening) text += print_opening(frame.opening, frame.rails);
  if (frame.has_ranges) text += print_ranges(frame.ranges);
  if (frame.in_part()) {
    text += " part " + std::to_string(frame.part.number + 1) + " of " + std::to_string(frame.part.count) +
            " of " + std::to_string(frame.part.total) + " bytes";
  } else if (frame.sequenced()) {
    text += print_segments(frame.segments);
  }
  return text;
}

std::string print(const Segment& segment) {
  std::string text = name_of(segment.kind) + number("length", segment.length);
  if (segment.detail != 0) text += hexadecimal("detail", segment.detail);
  if (segment.id != 0) text += number("id", segment.id);
  if (segment.peer_id != 0) text += number("peer id", segment.peer_id);
  if (segment.key != 0) text += hexadecimal("key", segment.key);
  if (segment.offset != 0) text += number("offset", segment.offset);
  if (segment.total != 0) text += number("total", segment.total);
  if (segment.tagged()) text += hexadecimal("tag", segment.tag);
  if ((segment.flags & segment_flag::kAddress) != 0) text += hexadecimal("address", segment.address);
  if (segment.has_data()) text += hexadecimal("data", segment.data);
  if (segment.confirm()) text += " confirm";
  if (segment.more()) text += " more";
  if (segment.continues()) text += " continues";
  return text;
}

}  // namespace cluster::wire
