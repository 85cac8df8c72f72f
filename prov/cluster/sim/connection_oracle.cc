#include "sim/connection_oracle.h"

#include <algorithm>
#include <cstring>

#include "sim/content.h"
#include "sim/failure.h"

namespace cluster::sim {
namespace {

/// Returns the number of a message. It consists of the attempt, the direction and the place in the stream.
MessageNumber number_of(const ConnectionOracle::Place& sender, std::uint32_t index) {
  return std::uint64_t{sender.attempt} << 32 | std::uint64_t{static_cast<std::uint8_t>(sender.side)} << 31 |
         index;
}

std::string text_of(const ConnectionOracle::Place& place) {
  return "attempt " + std::to_string(place.attempt) +
         (place.side == ConnectionSide::active ? ", active side: " : ", passive side: ");
}

}  // namespace

void ConnectionOracle::fail(const Place& place, const std::string& what) {
  throw SafetyFailure(text_of(place) + what);
}

ConnectionOracle::Record& ConnectionOracle::at(Attempt attempt) {
  if (attempt == 0 || attempt > attempts_.size())
    throw SafetyFailure("there is no attempt " + std::to_string(attempt));
  return attempts_[attempt - 1];
}

std::vector<std::byte> ConnectionOracle::data_of(Attempt attempt) {
  std::vector<std::byte> data(kNumberedFrom + attempt % 248);
  fill_content(attempt, data);
  return data;
}

ConnectionOracle::Attempt ConnectionOracle::begin(HostNumber asker, HostNumber asked, bool listens) {
  Record& record = attempts_.emplace_back();
  record.asked = asked;
  record.passive_gone = !listens;
  record.ends[0].host = asker;
  record.ends[0].open = true;
  return static_cast<Attempt>(attempts_.size());
}

ConnectionOracle::Attempt ConnectionOracle::requested(HostNumber asker, HostNumber here, ConstBytes data) {
  if (data.size() < kNumberedFrom) throw SafetyFailure("a request has lost its private data");
  const auto attempt = static_cast<Attempt>(number_in(data));
  Record& record = at(attempt);
  const Place place{attempt, ConnectionSide::passive};
  if (!std::ranges::equal(data, data_of(attempt))) fail(place, "the private data of the request is damaged");
  if (record.asked != here || record.ends[0].host != asker) fail(place, "the request has gone astray");
  if (record.requested) fail(place, "the request comes twice");
  record.requested = true;
  return attempt;
}

void ConnectionOracle::taken(Attempt attempt, HostNumber acceptor) {
  End& acceptors = at(attempt).ends[1];
  acceptors.host = acceptor;
  acceptors.open = true;
}

void ConnectionOracle::process_ends(const Place& place, bool orderly) {
  end(place).exited = true;
  end(place).gone = !orderly;
}

void ConnectionOracle::passive_ends(HostNumber host) {
  for (Record& record : attempts_) record.passive_gone = record.passive_gone || record.asked == host;
}

void ConnectionOracle::shuts_down(const Place& place) {
  End& here = end(place);
  if (here.over || here.shut_down) return;
  here.shut_down = true;
  here.sent_before_shutdown = here.sends;
}

void ConnectionOracle::connected(const Place& place, HostNumber peer_host, ConstBytes data) {
  End& here = end(place);
  const Record& record = at(place.attempt);
  if (here.connected || here.over) fail(place, "it is told twice what became of its attempt");
  if (!record.accepted) fail(place, "it is connected, but nobody has accepted");
  if (peer_host != peer(place).host) fail(place, "it is connected to another endpoint");
  const bool told = place.side == ConnectionSide::passive || std::ranges::equal(data, data_of(place.attempt));
  if (!told) fail(place, "the private data of the accept is not that of this attempt");
  here.connected = true;
  if (place.side == ConnectionSide::active) ++established_;
}

void ConnectionOracle::refused(const Place& place, Status cause, ConstBytes data) {
  End& here = end(place);
  const Record& record = at(place.attempt);
  if (here.connected || here.over) fail(place, "it is told twice what became of its attempt");
  if (!data.empty() && !(record.rejected && std::ranges::equal(data, data_of(place.attempt))))
    fail(place, "it is refused with private data that nobody gave for this attempt");
  const End& acceptor = record.ends[1];
  const bool ended_by_peer = record.rejected || record.passive_gone || acceptor.gone || acceptor.shut_down ||
                             network_fails_ || knows_former_acceptor(record);
  if (!ended_by_peer) fail(place, std::string("it is refused for no reason: ") + describe(cause));
  here.over = true;
}

bool ConnectionOracle::knows_former_acceptor(const Record& record) const {
  return std::ranges::any_of(attempts_, [&](const Record& each) {
    const bool half = each.ends[1].connected && !each.ends[0].connected;
    return half && each.ends[0].host == record.ends[0].host && each.ends[1].host == record.ends[1].host;
  });
}

void ConnectionOracle::ended(const Place& place, Status cause) {
  End& here = end(place);
  const End& there = peer(place);
  if (here.over) fail(place, "it is told twice that the connection is over");
  if (!here.connected && !here.shut_down) fail(place, "a connection ends that was never there");
  // If an end's attempt has failed, it answers an accept by a shutdown. The next endpoint at its address
  // refuses the accept.
  const bool by_peer = there.shut_down || (there.over && !there.connected);
  if (cause == Status::ok && !by_peer && !here.shut_down)
    fail(place, "the connection is shut down, but by neither side");
  if (cause != Status::ok && !by_peer && !there.gone && !network_fails_)
    fail(place, std::string("the connection ends for no reason: ") + describe(cause));
  here.over = true;
}

std::vector<std::byte> ConnectionOracle::next_message(const Place& place, std::size_t size) {
  std::vector<std::byte> content(size);
  fill_content(number_of(place, end(place).sends), content);
  return content;
}

void ConnectionOracle::send_ended(const Place& place, Status status) {
  End& here = end(place);
  if (++here.sends_ended > here.sends) fail(place, "a send ends twice");
  const End& there = peer(place);
  const bool excused = here.over || here.shut_down || there.shut_down || there.gone || network_fails_;
  if (status != Status::ok && !excused) fail(place, std::string("a send fails: ") + describe(status));
}

void ConnectionOracle::received(const Place& place, std::uint32_t receive, ConstBytes content) {
  ++end(place).receives_ended;
  const Place sender{place.attempt,
                     place.side == ConnectionSide::active ? ConnectionSide::passive : ConnectionSide::active};
  const MessageNumber expected = number_of(sender, receive);
  if (content.size() < kNumberedFrom || number_in(content) != expected)
    fail(place, "receive " + std::to_string(receive) + " gets another message than its own");
  if (first_wrong_byte(expected, content) != content.size()) fail(place, "a message is damaged");
  if (receive >= end(sender).sends) fail(place, "a message arrives that nobody has sent");
  ++messages_;
  bytes_ += content.size();
}

void ConnectionOracle::receive_failed(const Place& place, std::uint32_t receive) {
  End& here = end(place);
  const End& there = peer(place);
  ++here.receives_ended;
  const bool excused = !here.connected || here.shut_down || there.gone || network_fails_ || !there.shut_down;
  if (!here.over) fail(place, "a receive ends, but the connection does not");
  if (!excused && receive < there.sent_before_shutdown)
    fail(place, "message " + std::to_string(receive) + ", sent before the shutdown, is lost");
}

bool ConnectionOracle::settled() const {
  return std::ranges::all_of(attempts_, [](const Record& record) {
    const auto& [active, passive] = record.ends;
    const auto waits = [](const End& end) { return end.open && !end.over && !end.exited; };
    const bool both_connected = active.connected && passive.connected && waits(active) && waits(passive);
    return both_connected || !(waits(active) || waits(passive));
  });
}

void ConnectionOracle::check_complete() const {
  for (std::size_t i = 0; i < attempts_.size(); ++i) {
    for (const ConnectionSide side : {ConnectionSide::active, ConnectionSide::passive}) {
      const End& end = attempts_[i].ends[static_cast<std::size_t>(side)];
      if (!end.open || end.gone) continue;
      const std::string who = text_of({static_cast<Attempt>(i + 1), side});
      if (!end.over) throw LivenessFailure(who + "it is never told what became of it");
      if (end.exited) continue;
      if (end.sends_ended != end.sends) throw LivenessFailure(who + "a send never ends");
      if (end.receives_ended != end.receives) throw LivenessFailure(who + "a receive never ends");
    }
  }
}

}  // namespace cluster::sim
