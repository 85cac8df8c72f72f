// Judges connections (FI_EP_MSG). It knows every attempt to connect, what became of it at both ends, and
// every message. The request of an attempt, the answer to it and its messages contain the number of the
// attempt. So nothing that belongs to one connection passes for a part of another.
//
// The promises: A passive endpoint gets each request once. The active side learns once what becomes of its
// attempt: it is connected, or refused. A receive gets the message with its own number, whole. Each end
// learns once that the connection is over, and only if an application or a process ended it, or the network
// failed. If the peer has shut it down, all messages before that are there for which this end has receives.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "sim/packet.h"

namespace cluster::sim {

enum class ConnectionSide : std::uint8_t { active, passive };

class ConnectionOracle {
 public:
  using Attempt = std::uint32_t;  ///< counts from 1 through a run
  /// An end of an attempt.
  struct Place {
    Attempt attempt = 0;
    ConnectionSide side = ConnectionSide::active;
  };

  /// From now on a connection may end because the network has failed.
  void network_fails() { network_fails_ = true; }

  /// `listens`: a passive endpoint is there, and does not close.
  Attempt begin(HostNumber asker, HostNumber asked, bool listens);
  /// The private data of every request and answer of the attempt.
  static std::vector<std::byte> data_of(Attempt attempt);
  /// A passive endpoint has a request. Returns its attempt.
  Attempt requested(HostNumber asker, HostNumber here, ConstBytes data);
  /// The application opens an endpoint for the request.
  void taken(Attempt attempt, HostNumber acceptor);
  void accepts(Attempt attempt) { at(attempt).accepted = true; }
  void rejects(Attempt attempt) { at(attempt).rejected = true; }
  /// The application of this end shuts it down, or closes the endpoint.
  void shuts_down(const Place& place);
  /// The process of this end has ended: without a word, or after it has closed and owes nothing.
  void process_ends(const Place& place, bool orderly);
  /// The passive endpoint of this host closes, or its process has ended.
  void passive_ends(HostNumber host);

  void connected(const Place& place, HostNumber peer, ConstBytes data);
  void refused(const Place& place, Status cause, ConstBytes data);
  void ended(const Place& place, Status cause);
  /// Returns true if this end has been told that the attempt failed, or that the connection is over.
  bool is_over(const Place& place) { return end(place).over; }

  /// Returns the content of the next message that this end sends.
  std::vector<std::byte> next_message(const Place& place, std::size_t size);
  void sent(const Place& place) { ++end(place).sends; }
  /// Returns the number of a receive that this end posts.
  std::uint32_t posts_receive(const Place& place) { return end(place).receives++; }
  void send_ended(const Place& place, Status status);
  void received(const Place& place, std::uint32_t receive, ConstBytes content);
  void receive_failed(const Place& place, std::uint32_t receive);

  /// Returns true if each attempt is decided, and no end is connected to one that is not.
  bool settled() const;
  /// Throws if an end that lives has not been told, or an operation of such an end has not ended.
  void check_complete() const;
  std::uint64_t attempts() const { return attempts_.size(); }
  std::uint64_t established() const { return established_; }
  std::uint64_t messages() const { return messages_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct End {
    HostNumber host = 0;
    bool open = false;  ///< an endpoint exists, or existed
    bool connected = false;
    bool over = false;
    bool shut_down = false;  ///< by its own application
    bool exited = false;     ///< its process has ended...
    bool gone = false;       ///< ...without a word
    std::uint32_t sends = 0;
    std::uint32_t sends_ended = 0;
    std::uint32_t receives = 0;
    std::uint32_t receives_ended = 0;
    std::uint32_t sent_before_shutdown = 0;
  };
  struct Record {
    HostNumber asked = 0;
    bool requested = false;
    bool accepted = false;
    bool rejected = false;
    bool passive_gone = false;  ///< the passive endpoint has ended
    std::array<End, 2> ends;
  };

  Record& at(Attempt attempt);
  End& end(const Place& place) { return at(place.attempt).ends[static_cast<std::size_t>(place.side)]; }
  End& peer(const Place& place) { return at(place.attempt).ends[1 - static_cast<std::size_t>(place.side)]; }
  /// Returns true if the asker may have a session with an earlier endpoint at the acceptor's address: one that
  /// accepted an earlier endpoint at the asker's address, which was gone.
  bool knows_former_acceptor(const Record& record) const;
  [[noreturn]] static void fail(const Place& place, const std::string& what);

  std::vector<Record> attempts_;
  bool network_fails_ = false;
  std::uint64_t established_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace cluster::sim
