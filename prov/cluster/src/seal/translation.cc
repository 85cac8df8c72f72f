#include "seal/translation.h"

#include <algorithm>

#include "seal/keep_alive_seal.h"

namespace cluster::seal {

bool Translation::may_use(const Association& association, const link::Path& source) const {
  if (source.ethertype || source.to.verbs() || table_.lists_it(source.to, association)) return false;
  return std::ranges::none_of(ours_.addresses, [&](const SocketAddress& own) {
    return without_scope(own) == without_scope(source.to);
  });
}

/// Returns true if the association may seal the frames of this route. An association whose frames arrive from
/// a listed address keeps its route until a later incarnation has proved one of its other addresses. Two
/// incarnations behind one translator follow each other, and never alternate.
bool Translation::may_displace(const Association& association, const Route& route) const {
  const Association* const current = route.current;
  if (current == nullptr || current->peer().salt == association.peer().salt) return true;
  return !current->keeps_its_place() && !association.superseded;
}

/// The rails of two sides are paired by their position, if nothing else decides
/// (multipath/address_pairing.h).
std::size_t Translation::likely_index(const Association& association, std::uint8_t link) {
  return link < association.peer().addresses.size() ? link : 0;
}

bool Translation::user_gets(Time now, Association& association, const link::Path& from,
                            std::uint64_t& keep_alives) {
  if (!may_use(association, from)) return false;
  ObservedSource* source = association.sources.find(from.to, from.link);
  const std::size_t listed = source != nullptr ? source->listed : likely_index(association, from.link);
  const Route& route = table_.route(association.peer().addresses[listed]);
  if (!may_displace(association, route)) return false;
  association.confirmed = true;
  if (source == nullptr) {
    source = &association.sources.note(from.to, from.link);
    source->listed = listed;
  }
  if (source->proven && route.current == &association) {
    association.sources.use(*source);
  } else if (now >= source->next_question) {
    ask(now, association, *source, from, keep_alives);
  }
  // The answers to a frame of another incarnation would be sealed for the present one.
  return route.current == nullptr || route.current->peer().salt == association.peer().salt;
}

/// Sends a keep-alive to the source. Each names the next address that the peer lists, because nothing shows
/// which of them the router translates.
void Translation::ask(Time now, const Association& association, ObservedSource& source,
                      const link::Path& from, std::uint64_t& keep_alives) {
  if (source.question != 0 && !source.proven)
    source.listed = (source.listed + 1) % association.peer().addresses.size();
  source.question = ++keep_alives;
  source.next_question = now + kQuestionInterval;
  wire::FrameHeader header{};
  wire::SealTrailer trailer{};
  header.magic = wire::kMagic;
  header.version = wire::kVersion;
  header.kind = static_cast<std::uint8_t>(wire::FrameKind::keep_alive);
  header.flags = wire::frame_flag::kSealed;
  header.length = sizeof header + sizeof trailer;
  header.checksum = association.own_id();
  header.sequence = association.peer_id();  // the answer repeats it
  wire::set_challenge(header, environment_.random.next());
  trailer.counter = keep_alives;
  seal_keep_alive(association.key(), credentials_.mode, header, association.peer().addresses[source.listed],
                  trailer);
  const link::Path path = link::without_mac(from);
  link::OutFrame frame;
  frame.path = &path;
  frame.add(as_bytes(&header, sizeof header));
  frame.add(as_bytes(&trailer, sizeof trailer));
  link_.send_burst({&frame, 1});
}

Association* Translation::asked(const SocketAddress& from, const wire::FrameHeader& answer,
                                std::uint64_t counter, SocketAddress& address) const {
  Association* const association = table_.find_by_id(answer.sequence);
  const ObservedSource* const source =
      association != nullptr ? association->sources.asked(from, counter) : nullptr;
  if (source == nullptr) return nullptr;
  address = association->peer().addresses[source->listed];
  return association;
}

bool Translation::prove_by(Association& association, const link::Path& from, std::uint64_t counter) {
  ObservedSource* const source = association.sources.asked(from.to, counter);
  if (source == nullptr) return false;
  source->question = 0;
  const Route& route = table_.route(association.peer().addresses[source->listed]);
  if (!may_use(association, from) || !may_displace(association, route)) return false;
  prove(association, *source);
  return true;
}

void Translation::prove_by_response(Association& association, const link::Path& from) {
  const Association* const before = table_.behind(from.to);
  ObservedSource& source = association.sources.note(from.to, from.link);
  const SocketAddress address = known_as(from.to);
  const auto& addresses = association.peer().addresses;
  source.listed = static_cast<std::size_t>(std::ranges::find(addresses, address) - addresses.begin());
  if (before == nullptr || source.listed == addresses.size()) return association.sources.remove(from.to);
  prove(association, source);
}

bool Translation::succeed(Association& successor, const Association& before, const SocketAddress& asked,
                          std::uint8_t link) {
  if (successor.superseded || successor.peer().salt == before.peer().salt) return false;
  const auto place = [&](const Association& of) {
    const auto& addresses = of.peer().addresses;
    return static_cast<std::size_t>(std::ranges::find(addresses, asked) - addresses.begin());
  };
  const ObservedSource* const way = before.sources.way_to(place(before), link);
  if (place(successor) == successor.peer().addresses.size()) return false;
  if (way == nullptr) {  // the request has reached the successor at its listed address
    table_.make_current(successor, asked);
    return true;
  }
  link::Path path;
  path.to = way->address;
  path.link = link;
  if (!may_use(successor, path)) return false;
  ObservedSource& source = successor.sources.note(way->address, link);
  source.listed = place(successor);
  prove(successor, source);
  return true;
}

void Translation::on_listed(Association& association, const link::Path& from) {
  const auto& addresses = association.peer().addresses;
  const auto listed = static_cast<std::size_t>(std::ranges::find(addresses, from.to) - addresses.begin());
  association.sources.use_listed(listed, from.link);
}

void Translation::prove(Association& association, ObservedSource& source) {
  const bool known = source.proven;
  table_.prove(association, source);
  if (known) return;
  environment_.log.info("peer %s is behind a router that translates its address: frames to it go to %s",
                        association.peer().addresses[source.listed].text().c_str(),
                        source.address.text().c_str());
}

SocketAddress Translation::known_as(const SocketAddress& source) const {
  const Association* const association = table_.behind(source);
  const ObservedSource* const its = association != nullptr ? association->sources.at(source) : nullptr;
  return its != nullptr ? association->peer().addresses[its->listed] : source;
}

link::Path Translation::known_path(Association& association, const link::Path& from) const {
  const ObservedSource* const source = association.sources.find(from.to, from.link);
  const bool proven = source != nullptr && source->proven;
  link::Path path = proven ? from : link::without_mac(from);
  path.to =
      association.peer().addresses[source != nullptr ? source->listed : likely_index(association, from.link)];
  path.translated = true;
  return path;
}

link::Path Translation::outward(const Association& association, const link::Path& path) const {
  const auto& addresses = association.peer().addresses;
  const auto listed = static_cast<std::size_t>(std::ranges::find(addresses, path.to) - addresses.begin());
  const ObservedSource* const source = association.sources.way_to(listed, path.link);
  if (source == nullptr) return path;
  link::Path way = path;
  way.to = source->address;
  return way;
}

}  // namespace cluster::seal
