// Judges connections (FI_EP_MSG). The oracle knows every attempt to connect, what became of it at both ends,
// and every message. The request of an attempt, the answer to it and its messages contain the number of the
// attempt. So the oracle notices if any of them reaches another connection. It checks these promises:
//
//   - A passive endpoint gets each request once.
//   - The active side learns once whether its attempt is connected or refused.
//   - A receive gets the message that has the same number, as a whole.
//   - Each end learns once that the connection is over, and only if an application or a process ended the
//     connection, or the network failed.
//   - If the peer has shut the connection down, all messages that it sent before have arrived, as far as this
//     end has receives for them.
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
  /// One of the two ends of an attempt.
  struct Place {
    Attempt attempt = 0;
    ConnectionSide side = ConnectionSide::active;
  };

  /// The network fails. After this call any connection may end because of that.
  void network_fails() { network_fails_ = true; }

  /// An attempt begins. `listens`: the asked host has a passive endpoint that is not closing.
  Attempt begin(HostNumber asker, HostNumber asked, bool listens);
  /// Returns the private data that every request and answer of the attempt contains.
  static std::vector<std::byte> data_of(Attempt attempt);
  /// A passive endpoint has got a request. Returns the attempt to which the request belongs.
  Attempt requested(HostNumber asker, HostNumber here, ConstBytes data);
  /// The application opens an endpoint for the request.
  void taken(Attempt attempt, HostNumber acceptor);
  void accepts(Attempt attempt) { at(attempt).accepted = true; }
  void rejects(Attempt attempt) { at(attempt).rejected = true; }
  /// The application of this end shuts the connection down, or closes the endpoint.
  void shuts_down(const Place& place);
  /// The process of this end has ended. `orderly`: the endpoint had closed before, and owed nothing any
  /// more.
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

  /// Returns true if, in each attempt, both ends are connected, or both have been told that the attempt has
  /// failed or the connection is over. Ends whose process has ended do not count.
  bool settled() const;
  /// Throws if an end has not been told that its attempt has failed or its connection is over, or if an
  /// operation of a living end has not ended. Ends whose process was killed are exempt.
  void check_complete() const;
  std::uint64_t attempts() const { return attempts_.size(); }
  std::uint64_t established() const { return established_; }
  std::uint64_t messages() const { return messages_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct End {
    HostNumber host = 0;
    bool open = false;  ///< an endpoint was opened for this end
    bool connected = false;
    bool over = false;
    bool shut_down = false;  ///< its own application has shut it down
    bool exited = false;     ///< its process has ended
    bool gone = false;       ///< its process has ended, and still owed something
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
  /// Returns true if the asker may still have a session with an earlier endpoint at the acceptor's address.
  /// That endpoint accepted a request of an earlier endpoint at the asker's address, which was gone already.
  bool knows_former_acceptor(const Record& record) const;
  [[noreturn]] static void fail(const Place& place, const std::string& what);

  std::vector<Record> attempts_;
  bool network_fails_ = false;
  std::uint64_t established_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace cluster::sim
