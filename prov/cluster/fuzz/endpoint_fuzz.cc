// A whole endpoint among hostile hosts. It has a genuine peer, registered memory, a multicast group, a team
// and a sibling. The hosts call it under any name, take up its answers, claim rails and siblings, send
// segments of every kind in their sessions, frames of groups, and control frames; they record and replay
// what passes, with bytes changed. Meanwhile the application sends, receives, joins, leaves, and changes its
// address vector. Each operation ends at most once, and memory outside the region stays as it was.
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "fuzz/hostile_input.h"
#include "protocol/region_table.h"
#include "support/fake_network.h"
#include "support/forged_frame.h"
#include "wire/control.h"

namespace {

using namespace cluster;

SocketAddress host(int last, std::uint16_t port = 9228) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{0}, static_cast<std::byte>(last)};
  return SocketAddress::v4(ip, port);
}

const SocketAddress kTarget = host(1);
const SocketAddress kFriend = host(2);
/// The names that the hostile hosts use: the friend, endpoints beside it, the target itself, and hosts that
/// nobody knows.
const std::array<SocketAddress, 6> kSources{kFriend, host(2, 9300), host(2, 9301), kTarget, host(3), host(4)};
const std::byte kGroupIp[] = {std::byte{239}, std::byte{192}, std::byte{1}, std::byte{1}};
const SocketAddress kGroup = SocketAddress::v4(kGroupIp, 7000);
constexpr std::uint64_t kGroupKey = 77;

/// The target's socket of the group.
struct GroupSocket {
  std::deque<test::FakeNetwork::Packet> waiting;
  std::deque<test::FakeNetwork::Packet> read;
};

class GroupReceiver final : public link::MulticastReceiver {
 public:
  explicit GroupReceiver(GroupSocket& socket) : socket_(socket) {}
  std::size_t receive_burst(std::span<link::InFrame> frames) override {
    socket_.read.clear();
    std::size_t count = 0;
    for (; count < frames.size() && !socket_.waiting.empty(); ++count) {
      socket_.read.push_back(std::move(socket_.waiting.front()));
      socket_.waiting.pop_front();
      frames[count] = {.bytes = socket_.read.back().bytes, .from = {.to = socket_.read.back().from}};
    }
    return count;
  }
  int descriptor() const override { return -1; }

 private:
  GroupSocket& socket_;
};

class GroupJoiner final : public link::MulticastJoiner {
 public:
  explicit GroupJoiner(GroupSocket& socket) : socket_(socket) {}
  std::unique_ptr<link::MulticastReceiver> join(const SocketAddress&, std::span<const SocketAddress>,
                                                std::string&) override {
    return std::make_unique<GroupReceiver>(socket_);
  }

 private:
  GroupSocket& socket_;
};

transport::EngineSettings settings() {
  transport::EngineSettings chosen;
  chosen.flows_max = 16;
  chosen.linger = 0s;  // the clock stands still while an engine closes
  return chosen;
}

/// An endpoint and its application.
struct Endpoint {
  Endpoint(test::FakeNetwork& network, const SocketAddress& its_name, const SocketAddress& peer,
           std::shared_ptr<engine::EndpointRoster> roster)
      : random(its_name.hash()),
        environment{network.clock(), random, log, counters},
        engine(engine::EngineParts{.environment = environment,
                                   .settings = settings(),
                                   .name = its_name,
                                   .epoch = 1000,
                                   .link = std::make_unique<test::FakeLink>(network, its_name),
                                   .local_listener = nullptr,
                                   .resources = nullptr,
                                   .multicast = std::make_unique<GroupJoiner>(group_socket),
                                   .roster = std::move(roster)}) {
    book.insert(peer);
  }

  GroupSocket group_socket;
  test::FakeRandom random;
  test::FakeLog log;
  Counters counters;
  Environment environment;
  transport::AddressTable book;
  protocol::CompletionQueue queue;
  protocol::RegionTable regions;
  std::optional<std::uint64_t> group;  ///< the handle of its membership
  engine::Engine engine;
};

class EndpointHarness final : public protocol::GroupListener, public collective::JoinListener {
 public:
  explicit EndpointHarness(FuzzedDataProvider& input) : input_(input) {
    target_.regions.add(
        1, {.base = memory_.data() + kGuard, .length = kRegion, .readable = true, .writable = true});
    target_.engine.attach(target_.book, {.tx_queue = &target_.queue,
                                         .rx_queue = &target_.queue,
                                         .regions = &target_.regions,
                                         .groups = this,
                                         .joins_teams = true});
    friend_.engine.attach(friend_.book,
                          {.tx_queue = &friend_.queue, .rx_queue = &friend_.queue, .groups = this});
    network_.drop = [this](const test::FakeNetwork::Packet& packet, const SocketAddress& to) {
      note(packet, to);
      if (to == kGroup) (packet.from == kFriend ? target_ : friend_).group_socket.waiting.push_back(packet);
      return to == kGroup;
    };
  }
  ~EndpointHarness() override { network_.drop = nullptr; }

  void group_joined(void*) override {}
  void joined(Status) override { joining_ = false; }

  void step() {
    switch (input_.ConsumeIntegralInRange<int>(0, 19)) {
      case 0: pass(Duration(input_.ConsumeIntegralInRange<std::int64_t>(0, 3'000'000'000))); break;
      case 1: send(target_, 0); break;
      case 2: send(friend_, 0); break;
      case 3: receive(); break;
      case 4: change_book(); break;
      case 5: change_membership(input_.ConsumeBool() ? friend_ : target_); break;
      case 6: change_team(); break;
      case 7: cancel(); break;
      case 8: arrive(some_source(), group_frame()); break;
      case 9: claim(&EndpointHarness::control_frame); break;
      case 10: replay(); break;
      case 11: arrive(some_source(), made_up()); break;
      case 12:
      case 13: claim(&EndpointHarness::call); break;
      default: claim(&EndpointHarness::in_session); break;
    }
    for (int turn = 0; turn < 3; ++turn) pass(100us);
    check();
  }

 private:
  static constexpr std::size_t kGuard = 256;
  static constexpr std::size_t kRegion = 4096;
  static constexpr std::size_t kRecordedMax = 64;
  static constexpr std::byte kUntouched{0xA5};

  struct Recorded {
    SocketAddress from;
    std::vector<std::byte> bytes;
  };

  SocketAddress some_source() { return input_.PickValueInArray(kSources); }

  /// Records frames to the target, and what the target has told each name.
  void note(const test::FakeNetwork::Packet& packet, const SocketAddress& to) {
    const bool heard = to == kTarget || (to == kGroup && packet.from != kTarget);
    if (heard && recorded_.size() < kRecordedMax) recorded_.push_back({packet.from, packet.bytes});
    if (packet.from != kTarget || to == kTarget) return;
    last_[to] = packet.bytes;
    wire::FrameView view;
    if (wire::admit(packet.bytes, view) != wire::Refusal::none) return;
    if (view.has_opening) answers_[to] = view.opening;
    if (view.kind == wire::FrameKind::group) stream_ = view.session;
  }
  void pass(Duration time) {
    network_.clock().advance(time);
    target_.engine.poll();
    friend_.engine.poll();
  }
  void check() {
    const auto ended = [this](const protocol::Completion& completion) {
      if (completion.kind == protocol::Completion::Kind::remote_write) return;
      if (alive_.erase(completion.context) == 0) __builtin_trap();
    };
    const auto any = [](const protocol::Completion&) { return true; };
    target_.queue.drain(~std::size_t{0}, any, ended);
    friend_.queue.drain(~std::size_t{0}, any, ended);
    const auto touched = [](std::byte byte) { return byte != kUntouched; };
    if (std::any_of(memory_.begin(), memory_.begin() + kGuard, touched) ||
        std::any_of(memory_.end() - kGuard, memory_.end(), touched)) {
      __builtin_trap();
    }
  }

  void* begin() {
    auto* const context = reinterpret_cast<void*>(++contexts_);
    alive_.insert(context);
    return context;
  }
  Bytes buffer(std::size_t length) {
    buffers_.emplace_back(length);
    return buffers_.back();
  }
  void send(Endpoint& from, std::uint64_t to) {
    const ConstBytes slice = buffer(input_.PickValueInArray<std::size_t>({0, 8, 1000, 5000, 40'000}));
    void* const context = begin();
    const Status status =
        from.engine.send({.slices = {&slice, 1}, .length = slice.size(), .to = to, .context = context});
    if (status != Status::ok) alive_.erase(context);
  }
  void receive() {
    const Bytes slice = buffer(input_.PickValueInArray<std::size_t>({0, 8, 6000, 50'000}));
    void* const context = begin();
    if (target_.engine.receive({.slices = {&slice, 1}, .context = context, .ignore = ~std::uint64_t{0}}) !=
        Status::ok) {
      alive_.erase(context);
    }
  }
  void cancel() {
    target_.engine.cancel(
        reinterpret_cast<void*>(input_.ConsumeIntegralInRange<std::uint64_t>(1, contexts_ + 1)));
  }
  void change_book() {
    const SocketAddress name = some_source();
    const auto handle = target_.book.find(name);
    if (!handle) {
      target_.book.insert(name);
    } else if (name != kFriend) {
      target_.book.remove(*handle);
    }
  }
  void change_membership(Endpoint& member) {
    std::optional<std::uint64_t>& group = member.group;
    if (group && input_.ConsumeProbability<float>() < 0.8f) return send(member, *group);
    std::uint64_t handle = group.value_or(0);
    engine::JoinOp op{.address = kGroup, .key = kGroupKey, .role = {}};
    if (with_roster_) op.roster = {kTarget, kFriend};
    const Status status = member.engine.change_membership(group ? nullptr : &op, handle);
    if (status != Status::ok) return;
    group = group ? std::nullopt : std::optional(handle);
  }
  void change_team() {
    target_.engine.with_collectives([&](collective::Collectives& collectives) {
      if (team_ == nullptr) {
        team_ = &collectives.create({{~std::uint64_t{0}, kTarget}, {0, kFriend}}, 0, kGroupKey);
        joining_ = true;
        collectives.join(*team_, *this);
      } else if (input_.ConsumeBool()) {
        if (!joining_) collectives.start(*team_, {}, begin(), input_.ConsumeBool());
      } else if (collectives.leave(*team_) == Status::ok) {
        team_ = nullptr;
        joining_ = false;
      }
      return Status::ok;
    });
  }

  void arrive(const SocketAddress& from, const std::vector<std::byte>& bytes) {
    if (bytes.size() < sizeof(wire::FrameHeader) || bytes.size() > 1472) return;
    const bool to_group = target_.group && input_.ConsumeProbability<float>() < 0.3f;
    if (to_group) {
      target_.group_socket.waiting.push_back({from, bytes});
      return;
    }
    const link::Path path{kTarget, {}, false};
    link::OutFrame frame;
    frame.path = &path;
    frame.add(bytes);
    network_.carry(from, frame);
  }

  /// A frame about a name, mostly from that name.
  void claim(std::vector<std::byte> (EndpointHarness::*make)(const SocketAddress&)) {
    const SocketAddress name = some_source();
    arrive(input_.ConsumeProbability<float>() < 0.8f ? name : some_source(), (this->*make)(name));
  }
  /// Mostly the same call as the last one under this name, or its continuation once the target has answered.
  std::vector<std::byte> call(const SocketAddress& name) {
    auto found = calls_.find(name);
    if (found == calls_.end() || input_.ConsumeProbability<float>() < 0.2f) {
      test::ForgedFrame made = test::ForgedFrame::call(
          name, input_.ConsumeIntegralInRange<std::uint32_t>(1, 4), fuzz::near<std::uint64_t>(input_, 1000));
      for (int more = input_.ConsumeIntegralInRange<int>(0, 2); more > 0; --more)
        made.rails.push_back(some_source());
      if (input_.ConsumeBool()) made.sibling = some_source();
      found = calls_.insert_or_assign(name, made).first;
    }
    test::ForgedFrame frame = found->second;
    if (const auto answer = answers_.find(name);
        answer != answers_.end() && input_.ConsumeProbability<float>() < 0.8f) {
      frame.take_up(answer->second);
    }
    frame.header.sequence = frame.opening->session + input_.ConsumeIntegralInRange<std::uint32_t>(0, 3);
    if (input_.ConsumeBool()) change(frame);
    return frame.bytes();
  }
  /// A frame in the session that the target has told this name.
  std::vector<std::byte> in_session(const SocketAddress& name) {
    test::ForgedFrame frame;
    if (const auto answer = answers_.find(name); answer != answers_.end())
      frame.header.session = answer->second.session;
    frame.header.sequence = input_.ConsumeIntegralInRange<std::uint32_t>(0, 12);
    frame.header.transmission = input_.ConsumeIntegralInRange<std::uint32_t>(0, 16);
    frame.header.ack = fuzz::near<std::uint32_t>(input_, frame.header.session);
    frame.header.largest_acked = input_.ConsumeIntegralInRange<std::uint32_t>(0, 8);
    change(frame);
    if (input_.ConsumeProbability<float>() < 0.1f)
      frame.header.kind = static_cast<std::uint8_t>(wire::FrameKind::fin);
    return frame.bytes();
  }
  void change(test::ForgedFrame& frame) {
    wire::Segment segment;
    if (!fuzz::admit_segment(fuzz::segment(input_), segment)) segment = {};
    if (wire::of_group(segment.kind) && input_.ConsumeProbability<float>() < 0.9f) {
      segment.key = kGroupKey;
      segment.id = stream_;
    }
    frame.carry(segment, segment.length % 1000);
    if (input_.ConsumeProbability<float>() < 0.1f)
      frame.header.flags = input_.ConsumeIntegral<std::uint8_t>();
    frame.header.flags = frame.header.flags & static_cast<std::uint8_t>(~wire::frame_flag::kOpening);
  }
  std::vector<std::byte> group_frame() {
    test::ForgedFrame frame;
    frame.header.kind = static_cast<std::uint8_t>(
        input_.ConsumeProbability<float>() < 0.8f ? wire::FrameKind::group : wire::FrameKind::group_announce);
    frame.header.session = input_.ConsumeIntegralInRange<std::uint32_t>(0, 3);
    frame.header.sequence = fuzz::near<std::uint32_t>(input_, kGroupKey);
    frame.header.transmission = fuzz::near<std::uint32_t>(input_, kGroupKey);
    frame.header.ack = fuzz::near<std::uint32_t>(input_, 0);
    change(frame);
    return frame.bytes();
  }
  /// An answer to, or a refusal of, what the target has sent to this name, or a question.
  std::vector<std::byte> control_frame(const SocketAddress& name) {
    wire::FrameView asked;
    if (const auto last = last_.find(name); last != last_.end()) wire::admit(last->second, asked);
    const auto number = input_.ConsumeIntegralInRange<std::uint32_t>(0, 4);
    const auto made = [&] {
      switch (input_.ConsumeIntegralInRange<int>(0, 5)) {
        case 0: return wire::ControlFrame::alive(asked);
        case 1: return wire::ControlFrame::path_response(asked);
        case 2: return wire::ControlFrame::sibling_response(asked);
        case 3: return wire::ControlFrame::sibling_request(number, number, wire::rail_block(some_source()));
        case 4: return wire::ControlFrame::keep_alive(number, number, asked.session);
        default:
          return wire::ControlFrame::reset(
              asked,
              input_.PickValueInArray({wire::ResetReason::unknown_session, wire::ResetReason::stale_epoch,
                                       wire::ResetReason::foreign_source}),
              fuzz::near<std::uint64_t>(input_, 1000));
      }
    }();
    const ConstBytes bytes = made.bytes();
    std::vector<std::byte> frame(bytes.begin(), bytes.end());
    if (input_.ConsumeProbability<float>() < 0.3f) alter(frame);
    return frame;
  }
  void replay() {
    if (recorded_.empty()) return;
    Recorded copy = recorded_[input_.ConsumeIntegralInRange<std::size_t>(0, recorded_.size() - 1)];
    if (input_.ConsumeBool()) copy.from = some_source();
    if (input_.ConsumeBool()) alter(copy.bytes);
    arrive(copy.from, copy.bytes);
  }
  void alter(std::vector<std::byte>& frame) {
    if (input_.ConsumeProbability<float>() < 0.2f)
      frame.resize(input_.ConsumeIntegralInRange<std::size_t>(0, frame.size()));
    if (frame.size() < sizeof(wire::FrameHeader)) return;
    frame[input_.ConsumeIntegralInRange<std::size_t>(0, frame.size() - 1)] =
        std::byte{input_.ConsumeIntegral<std::uint8_t>()};
    fuzz::set_checksum(frame);
  }
  std::vector<std::byte> made_up() {
    const std::vector<std::uint8_t> content = input_.ConsumeBytes<std::uint8_t>(200);
    std::vector<std::byte> frame(content.size());
    if (!content.empty()) std::memcpy(frame.data(), content.data(), content.size());
    fuzz::set_checksum(frame);
    return frame;
  }

  FuzzedDataProvider& input_;
  const bool with_roster_ = input_.ConsumeBool();
  std::vector<std::byte> memory_ = std::vector<std::byte>(kRegion + 2 * kGuard, kUntouched);
  std::deque<std::vector<std::byte>> buffers_;
  std::set<void*> alive_;  ///< operations without a completion
  std::uint64_t contexts_ = 0;
  std::vector<Recorded> recorded_;
  std::unordered_map<SocketAddress, test::ForgedFrame, SocketAddressHash> calls_;  ///< the last of each name
  std::unordered_map<SocketAddress, wire::Opening, SocketAddressHash>
      answers_;  ///< what the target told each name
  std::unordered_map<SocketAddress, std::vector<std::byte>, SocketAddressHash> last_;  ///< frame to each name
  std::uint32_t stream_ = 0;  ///< the target's stream in the group
  collective::Team* team_ = nullptr;
  bool joining_ = false;
  test::FakeClock clock_;
  test::FakeNetwork network_{clock_, 1};
  std::shared_ptr<engine::EndpointRoster> roster_ = std::make_shared<engine::EndpointRoster>();
  engine::EndpointRoster::Entry listed_{roster_, host(1, 9400)};
  Endpoint target_{network_, kTarget, kFriend, roster_};
  Endpoint friend_{network_, kFriend, kTarget, nullptr};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kInputMax = 4096;  // every operation keeps its buffer
  FuzzedDataProvider input(data, size < kInputMax ? size : kInputMax);
  EndpointHarness harness(input);
  while (input.remaining_bytes() > 0) harness.step();
  return 0;
}
