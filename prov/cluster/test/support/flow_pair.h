// Two flows joined by a fake network, driven from event to event as an engine would drive them:
// receive, hand on, timers, transmit. Each end keeps what it was given and checks the tokens.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "reliability/flow.h"
#include "reliability/frame_body.h"
#include "support/fake_network.h"
#include "wire/control.h"

namespace cluster::test {

inline SocketAddress name_of(std::uint8_t node) {
  const std::byte ip[4] = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{node}};
  return SocketAddress::v4(ip, 5000);
}

/// Peers that are silent are given up soon.
inline reliability::FlowSettings pair_settings() {
  reliability::FlowSettings settings;
  settings.peer_timeout = 5s;
  return settings;
}

/// Bytes that tell where they belong.
inline std::vector<std::byte> pattern(std::uint64_t from, std::size_t length) {
  std::vector<std::byte> bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>((from + i) * 2654435761u >> 11);
  return bytes;
}

/// As the network would quote the flow's last keep-alive.
inline link::PathError path_error_about(const reliability::Flow& flow, const SocketAddress& peer,
                                        Status status, std::uint8_t rail = 0) {
  wire::FrameHeader header{};
  header.magic = wire::kMagic;
  header.kind = static_cast<std::uint8_t>(wire::FrameKind::keep_alive);
  header.session = flow.handshake().peer_session();
  header.sequence = flow.handshake().session();
  link::PathError error{peer, status, rail};
  error.set_quote(as_bytes(&header, sizeof header));
  return error;
}

struct Delivery {
  wire::Segment segment;
  std::vector<std::byte> payload;
};

class FlowEnd {
 public:
  FlowEnd(FakeNetwork& network, std::uint8_t node, std::uint8_t peer_node,
          const reliability::FlowSettings& flow_settings = pair_settings(), std::uint64_t epoch = 1)
      : settings(flow_settings),
        node_(node),
        peer_(peer_node),
        network_(network),
        link(network, name_of(node), flow_settings.frame_max) {
    begin(epoch);
  }

  /// A new flow (a new life of this end).
  void begin(std::uint64_t epoch) {
    const reliability::Identity identity{
        name_of(node_), epoch, static_cast<std::uint32_t>(node_ * 1000u + epoch), node_ * 1'000'000u + epoch};
    flow = std::make_unique<reliability::Flow>(settings, identity, link::Path{name_of(peer_), {}, false}, log,
                                               counters, bodies, burst, random);
  }
  Time now() const { return network_.clock().now(); }

  /// To be posted as soon as the flow takes it. Ordered messages are numbered by `tag`.
  void send_small(std::size_t length, bool with_token = true) {
    wire::Segment segment;
    segment.kind = wire::SegmentKind::eager;
    segment.flags = wire::segment_flag::kTagged;
    segment.tag = smalls_++;
    enqueue(segment, pattern(segment.tag, length), carrier::PayloadMode::copy, with_token);
  }
  /// Of the kind that the peer's application may wait for.
  void send_answer() { enqueue({.kind = wire::SegmentKind::done}, {}, carrier::PayloadMode::copy, false); }
  void send_bulk(std::size_t length) {
    wire::Segment segment;
    segment.kind = wire::SegmentKind::bulk;
    segment.peer_id = 7;
    segment.offset = bulk_offset_;
    enqueue(segment, pattern(bulk_offset_, length), carrier::PayloadMode::reference, true);
    bulk_offset_ += length;
  }
  /// The same in as many frames as it takes, which the flow cuts.
  void send_long_bulk(std::size_t length) {
    wire::Segment segment;
    segment.kind = wire::SegmentKind::bulk;
    segment.peer_id = 7;
    segment.offset = bulk_offset_;
    Item item{segment, pattern(bulk_offset_, length), carrier::PayloadMode::reference, 0};
    long_backlog_.push_back(std::make_shared<Item>(std::move(item)));
    bulk_offset_ += length;
  }
  std::size_t full_bulk() const {
    wire::Segment segment;
    segment.kind = wire::SegmentKind::bulk;
    return flow->queue().payload_max(segment);
  }

  link::PathError path_error(Status status) const { return path_error_about(*flow, name_of(peer_), status); }
  /// Sends a message by the frame lane. Returns false if the lane does not accept it.
  bool send_alone(std::size_t length) {
    const wire::EagerHeader header{
        .length = static_cast<std::uint32_t>(length), .tagged = true, .tag = smalls_};
    if (!backlog_.empty() || !flow->lane().accepts(header.size() + length)) return false;
    const std::vector<std::byte> bytes = pattern(smalls_++, length);
    EXPECT_TRUE(flow->queue().post_alone(header, bytes.data(), ++last_token_));
    ++tokens_expected;
    unsettled = true;
    if (!flow->lane().send(now(), link)) flow->lane().close();
    return true;
  }
  /// When this end needs a turn although nothing arrives.
  Time deadline() const { return unsettled ? Time{} : flow->deadline(); }
  /// One turn of an engine's agenda. If only the frame lane has brought something, the next turn settles it.
  void turn() {
    const std::size_t before = alone_taken;
    others_taken = 0;
    receive();
    take_tokens();
    if (alone_taken != before && others_taken == 0 && flow->lane().open() && backlog_.empty()) {
      unsettled = true;
      return;
    }
    unsettled = false;
    flow->settle();
    if (flow->deadline() <= now()) flow->on_timer(now());
    if (flow->status() == Status::ok && flow->liveness().keep_alive_due(now())) {
      last_keep_alive = flow->keep_alive(now(), {name_of(peer_), {}, false});
      ++keep_alives;
    }
    pump();
    flow->transmit(now(), link, &network_.clock());
  }
  void pump() {
    while (!backlog_.empty()) {
      Item& item = *backlog_.front();
      const std::array<ConstBytes, 1> slices{ConstBytes(item.payload)};
      if (!flow->queue().post(item.segment, {slices, 0, item.payload.size()}, item.mode, item.token)) break;
      // Copied payloads are the caller's again; a later read is caught by the sanitizer.
      if (item.mode == carrier::PayloadMode::copy) std::vector<std::byte>().swap(item.payload);
      backlog_.pop_front();
    }
    while (!long_backlog_.empty() && post_long(long_backlog_.front())) long_backlog_.pop_front();
  }
  void receive() {
    std::array<link::InFrame, link::kBurstMax> frames;
    for (std::size_t count = link.receive_burst(frames); count > 0; count = link.receive_burst(frames)) {
      for (std::size_t i = 0; i < count; ++i) take(frames[i]);
    }
  }
  bool idle() const { return backlog_.empty() && long_backlog_.empty() && flow->quiet(); }

  reliability::FlowSettings settings;
  FakeLog log;
  Counters counters;
  reliability::BodyPool bodies{settings.frame_max};
  reliability::Burst burst;
  FakeRandom random;
  std::unique_ptr<reliability::Flow> flow;
  std::vector<Delivery> smalls;               ///< in the order they were handed on
  std::map<std::uint64_t, std::size_t> bulk;  ///< offset -> length
  bool takes_alone = false;                   ///< arriving frames may take the frame lane
  bool unsettled = false;                     ///< the lane was used since the last full turn
  std::size_t alone_taken = 0;                ///< frames that arrived by the lane
  std::size_t others_taken = 0;               ///< the other frames of this turn
  std::size_t answers = 0;
  std::size_t refused = 0;      ///< frames that the gate or the flow refused
  std::size_t keep_alives = 0;  ///< times the flow asked for a sign of life
  wire::ControlFrame last_keep_alive = wire::ControlFrame::keep_alive(0, 0);
  std::size_t tokens_expected = 0;
  std::set<carrier::Token> tokens_seen;

 private:
  struct Item {
    wire::Segment segment;
    std::vector<std::byte> payload;
    carrier::PayloadMode mode;
    carrier::Token token;
  };

  void enqueue(wire::Segment segment, std::vector<std::byte> payload, carrier::PayloadMode mode,
               bool with_token) {
    segment.length = static_cast<std::uint32_t>(payload.size());
    const carrier::Token token = with_token ? ++last_token_ : 0;
    if (with_token) ++tokens_expected;
    auto item = std::make_unique<Item>(Item{segment, std::move(payload), mode, token});
    backlog_.push_back(item.get());
    if (with_token) held_.emplace(token, std::move(item));
    if (!with_token) loose_.push_back(std::move(item));
  }
  /// True if the flow has taken all of it. Its memory is kept until the last of its tokens has come.
  bool post_long(const std::shared_ptr<Item>& item) {
    const std::array<ConstBytes, 1> slices{ConstBytes(item->payload)};
    while (long_posted_ < item->payload.size()) {
      wire::Segment segment = item->segment;
      segment.offset += long_posted_;
      const Gather rest{slices, long_posted_, item->payload.size() - long_posted_};
      const std::size_t taken = flow->queue().post_run(segment, rest, last_token_ + 1);
      if (taken == 0) return false;
      held_long_.emplace(++last_token_, item);
      ++tokens_expected;
      long_posted_ += taken;
    }
    long_posted_ = 0;
    return true;
  }
  void take_tokens() {
    std::vector<carrier::Token> tokens;
    flow->take_acked(tokens);
    for (const carrier::Token token : tokens) {
      EXPECT_TRUE(tokens_seen.insert(token).second) << "token " << token << " reported twice";
      held_.erase(token);  // its memory is freed: a later read is an error
      held_long_.erase(token);
    }
  }
  bool take_alone(const link::InFrame& frame) {
    wire::LoneFrame lone;
    if (!wire::admit_lone(frame.bytes, lone) || !lone.only_message()) return false;
    if (!flow->lane().predicts(lone, frame.from)) return false;
    if (flow->lane().take(now(), lone, frame.from, frame.arrived)) flow->lane().close();
    ++alone_taken;
    wire::Segment segment;
    segment.length = lone.message.length;
    segment.tag = lone.message.tag;
    smalls.push_back({segment, {lone.payload, lone.payload + lone.message.length}});
    return true;
  }
  void take(const link::InFrame& frame) {
    if (takes_alone && take_alone(frame)) return;
    flow->lane().close();
    ++others_taken;
    wire::FrameView view;
    if (wire::admit(frame.bytes, view) != wire::Refusal::none) {
      ++refused;
      return;
    }
    if (view.kind == wire::FrameKind::path_challenge) {  // as the engine does it
      const wire::ControlFrame response = wire::ControlFrame::path_response(view);
      link::OutFrame out;
      out.path = &frame.from;
      out.add(response.bytes());
      link.send_burst({&out, 1});
      return;
    }
    if (view.kind == wire::FrameKind::path_response) {
      if (!flow->on_alive(now(), view, frame.from)) ++refused;
      return;
    }
    if (view.kind == wire::FrameKind::flow && view.session == 0) {
      return flow->answer_opening(view, link::without_mac(frame.from), link);
    }
    if (flow->receive(now(), view, frame.from, frame.arrived) == reliability::ReceiveResult::refused)
      ++refused;
    ConstBytes segments;
    while (flow->receiver().next(segments)) unpack(segments);
  }
  void unpack(ConstBytes segments) {
    while (!segments.empty()) {
      wire::Segment segment;
      const std::size_t header = wire::decode(segments, segment);
      ASSERT_GT(header, 0u);
      ASSERT_LE(segment.length, segments.size() - header);
      const ConstBytes payload = segments.subspan(header, segment.length);
      segments = segments.subspan(header + segment.length);
      if (segment.kind == wire::SegmentKind::padding) continue;
      if (segment.kind == wire::SegmentKind::done) {
        ++answers;
        continue;
      }
      if (wire::ordered(segment.kind)) {
        smalls.push_back({segment, {payload.begin(), payload.end()}});
      } else {
        EXPECT_TRUE(bulk.emplace(segment.offset, segment.length).second) << "bulk came twice";
        const std::vector<std::byte> wanted = pattern(segment.offset, segment.length);
        EXPECT_EQ(std::memcmp(payload.data(), wanted.data(), wanted.size()), 0);
      }
    }
  }

  std::uint8_t node_;
  std::uint8_t peer_;
  FakeNetwork& network_;
  std::deque<Item*> backlog_;
  std::deque<std::shared_ptr<Item>> long_backlog_;
  std::map<carrier::Token, std::shared_ptr<Item>> held_long_;
  std::size_t long_posted_ = 0;  ///< bytes of the first of them
  std::map<carrier::Token, std::unique_ptr<Item>> held_;
  std::vector<std::unique_ptr<Item>> loose_;
  carrier::Token last_token_ = 0;
  std::uint64_t smalls_ = 0;
  std::uint64_t bulk_offset_ = 0;

 public:
  FakeLink link;

  /// Everything posted by `sender` came here once, in order, intact.
  void expect_all_of(const FlowEnd& sender) const {
    ASSERT_EQ(smalls.size(), sender.smalls_);
    for (std::size_t i = 0; i < smalls.size(); ++i) {
      ASSERT_EQ(smalls[i].segment.tag, i);
      ASSERT_EQ(smalls[i].payload, pattern(i, smalls[i].payload.size()));
    }
    std::uint64_t reached = 0;
    for (const auto& [offset, length] : bulk) {
      ASSERT_EQ(offset, reached);
      reached += length;
    }
    EXPECT_EQ(reached, sender.bulk_offset_);
    EXPECT_EQ(sender.tokens_seen.size(), sender.tokens_expected);
  }
};

class FlowPair {
 public:
  explicit FlowPair(std::uint64_t seed, const reliability::FlowSettings& settings = pair_settings())
      : network(clock, seed), a(network, 1, 2, settings), b(network, 2, 1, settings) {}

  /// Moves to the next event, at most to `limit`; false if there is none before it.
  bool step(Time limit) {
    const Time next = std::min({network.next_arrival(), a.deadline(), b.deadline()});
    // A turn takes an engine some time, during which more may arrive.
    const Time then = std::max(next, clock.now() + 200ns);
    if (next == kNever || then > limit) return false;
    clock.set(then);
    a.turn();
    b.turn();
    return true;
  }
  /// Runs until both ends are idle; false if that takes longer than `patience`.
  bool run(Duration patience) {
    const Time limit = clock.now() + patience;
    a.turn();
    b.turn();
    while (!(a.idle() && b.idle())) {
      if (!step(limit)) return false;
      if (a.flow->status() != Status::ok || b.flow->status() != Status::ok) return false;
    }
    return true;
  }
  /// Runs for exactly so long, whatever happens.
  void pass(Duration time) {
    const Time limit = clock.now() + time;
    a.turn();
    b.turn();
    while (step(limit)) continue;
    clock.set(limit);
  }

  FakeClock clock;
  FakeNetwork network;
  FlowEnd a;
  FlowEnd b;
};

}  // namespace cluster::test
