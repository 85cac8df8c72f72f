#include "relay/relay.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cluster::relay {
namespace {

std::uint64_t interval_of(Time now) {
  return static_cast<std::uint64_t>(now.time_since_epoch() / Relay::kCookieInterval);
}

}  // namespace

Relay::Relay(std::vector<JobRelayKeys> jobs, link::Link& link, const Environment& environment,
             const Limits& limits)
    : link_(link),
      environment_(environment),
      limits_(limits),
      cookies_{environment.random.next(), environment.random.next()},
      jobs_(jobs.size()) {
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    for (auto& key : jobs[job]) keys_.push_back({std::move(key), job});
  }
}

std::size_t Relay::poll() {
  const std::size_t count = link_.receive_burst(arrivals_);
  if (count == 0) return 0;
  const Time now = environment_.clock.now();
  if (now >= next_sweep_) sweep(now);
  for (const link::InFrame& arrival : std::span(arrivals_).first(count)) {
    for (link::ArrivalWalk walk(arrival); !walk.done();) {
      const Bytes datagram = walk.datagram();
      wire::RelayTag tag;
      if (const std::size_t length = wire::tagged_frame(datagram, tag); length != 0) {
        forward(now, datagram.first(length + sizeof tag), tag, arrival.from);
        walk.pass(1, length + sizeof tag);
      } else if (datagram.size() >= wire::kRelayFrameSize) {
        on_message(now, datagram.first(wire::kRelayFrameSize), arrival.from);
        walk.pass_refused(wire::kRelayFrameSize);
      } else {
        ++totals_.refused;
        walk.pass_datagram();
      }
    }
  }
  send_burst();
  return count;
}

void Relay::on_message(Time now, ConstBytes frame, const link::Path& from) {
  const std::optional<wire::RelayMessage> message = wire::decode_relay(frame);
  const auto is_its_key = [&](const KnownKey& each) { return message && each.key->id() == message->key_id; };
  const auto known = std::ranges::find_if(keys_, is_its_key);
  const bool genuine = known != keys_.end() && known->key->verify(frame);
  const bool joins = genuine && message->kind == wire::FrameKind::relay_join &&
                     may_join(now, *message, from.to) && jobs_[known->job].joins.take(now);
  if (joins) return join(now, *known, *message, from);
  const bool asks = genuine && message->kind == wire::FrameKind::relay_request;
  if (!asks || !jobs_[known->job].offers.take(now)) {
    ++totals_.refused;
    return;
  }
  wire::RelayMessage offer = *message;
  offer.kind = wire::FrameKind::relay_offer;
  offer.cookie = cookie(interval_of(now), *message, from.to);
  offer.member = 0;
  answer(*known->key, offer, from);
}

/// Returns the cookie for a request from this source. It is never 0.
std::uint64_t Relay::cookie(std::uint64_t interval, const wire::RelayMessage& message,
                            const SocketAddress& source) const {
  const auto name = message.name.words(), from = source.words();
  const std::array<std::uint64_t, 8> words{name[0], name[1], name[2],  from[0],
                                           from[1], from[2], interval, message.number};
  return std::max<std::uint64_t>(cookies_(words), 1);
}

/// Returns true if the sender of the join has received its cookie at this source.
bool Relay::may_join(Time now, const wire::RelayMessage& message, const SocketAddress& source) const {
  const std::uint64_t interval = interval_of(now);
  return message.cookie == cookie(interval, message, source) ||
         message.cookie == cookie(interval - 1, message, source);
}

void Relay::join(Time now, const KnownKey& known, const wire::RelayMessage& message, const link::Path& from) {
  Job& job = jobs_[known.job];
  auto place = job.names.find(message.name);
  if (place == job.names.end()) {
    if (!make_room(now, job)) return;
    std::uint32_t number = 0;
    do number = static_cast<std::uint32_t>(environment_.random.next());
    while (number == 0 || members_.contains(number));
    place = job.names.emplace(message.name, number).first;
    Member& made = members_[number];
    made.job = known.job;
    made.name = message.name;
  }
  Member& member = members_[place->second];
  if (member.path.to != from.to)
    environment_.log.info("relay: forwards frames of %s, which come from %s", message.name.text().c_str(),
                          from.to.text().c_str());
  member.path = link::without_mac(from);
  member.heard = now;
  wire::RelayMessage joined = message;
  joined.kind = wire::FrameKind::relay_joined;
  joined.member = place->second;
  answer(*known.key, joined, from);
}

bool Relay::make_room(Time now, Job& job) {
  if (job.names.size() < limits_.members) return true;
  const auto heard = [this](const auto& each) { return members_.find(each.second)->second.heard; };
  const auto silent = std::ranges::min_element(job.names, {}, heard);
  if (silent != job.names.end() && now >= heard(*silent) + kSilentMin) {
    forget(silent->second);
    return true;
  }
  if (now >= job.next_warning) {
    job.next_warning = now + kWarningInterval;
    environment_.log.warn("relay: refuses further endpoints, because it already serves %zu",
                          job.names.size());
  }
  return false;
}

void Relay::answer(const RelayKey& key, const wire::RelayMessage& message, const link::Path& to) {
  const wire::RelayFrame frame = key.seal(message);
  const link::Path path = link::without_mac(to);
  link::send_frame(link_, frame, path);
}

/// Forwards the datagram, which is a frame and its tag. Rewrites the tag for the receiver.
void Relay::forward(Time now, Bytes datagram, wire::RelayTag tag, const link::Path& from) {
  const auto sender = members_.find(tag.member);
  if (sender == members_.end() || sender->second.path.to != from.to || tag.hops == 0 ||
      tag.hops > wire::kRelayHops) {
    ++totals_.refused;
    return;
  }
  Member& member = sender->second;
  member.heard = now;
  const auto& names = jobs_[member.job].names;
  const auto receiver = names.find(wire::address_of(tag.peer, 0));
  if (receiver == names.end() || receiver->second == sender->first) {
    ++totals_.refused;
    return;
  }
  if (!pay(now, member, datagram.size())) {
    ++totals_.dropped;
    return;
  }
  --tag.hops;
  tag.member = receiver->second;
  tag.peer = wire::rail_block(member.name);
  std::memcpy(datagram.data() + datagram.size() - sizeof tag, &tag, sizeof tag);
  link::OutFrame& frame = burst_.add();
  frame.path = &members_.find(receiver->second)->second.path;
  frame.add(datagram);
  if (burst_.frames().size() == link::kBurstMax) send_burst();
}

/// Returns true if the member may send so many bytes now, and counts them. Active jobs have equal shares, and
/// so have the active members of a job.
bool Relay::pay(Time now, Member& member, std::size_t bytes) {
  member.wanted += bytes;
  const std::size_t shares =
      std::max<std::size_t>(active_, 1) * std::max<std::size_t>(jobs_[member.job].active, 1);
  member.paid_until = std::max(member.paid_until, now);
  if (member.paid_until > now + kBurst) return false;
  const double ns = 1e9 * static_cast<double>(bytes * shares) / static_cast<double>(limits_.bytes_per_second);
  member.paid_until += Duration(static_cast<std::int64_t>(ns));
  return true;
}

/// Sends the burst. What the link does not take is lost.
void Relay::send_burst() {
  const std::span<const link::OutFrame> frames = burst_.frames();
  for (std::size_t done = 0; done < frames.size(); ++done) {
    const std::size_t taken = link_.send_burst(frames.subspan(done));
    for (const link::OutFrame& frame : frames.subspan(done, taken)) totals_.bytes += frame.size;
    totals_.frames += taken;
    done += taken;
    if (done < frames.size()) ++totals_.dropped;
  }
  burst_.clear();
}

void Relay::sweep(Time now) {
  next_sweep_ = now + kSweepInterval;
  for (Job& job : jobs_) job.active = 0;
  std::vector<std::uint32_t> silent;
  for (auto& [number, member] : members_) {
    const bool active = std::exchange(member.wanted, 0) >= limits_.bytes_per_second / limits_.members;
    jobs_[member.job].active += active ? 1 : 0;
    if (now >= member.heard + kSilentMax) silent.push_back(number);
  }
  active_ =
      static_cast<std::size_t>(std::ranges::count_if(jobs_, [](const Job& job) { return job.active != 0; }));
  for (const std::uint32_t number : silent) forget(number);
}

void Relay::forget(std::uint32_t number) {
  send_burst();  // its frames refer to the paths of members
  const auto member = members_.find(number);
  jobs_[member->second.job].names.erase(member->second.name);
  members_.erase(member);
}

}  // namespace cluster::relay
