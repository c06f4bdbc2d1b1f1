#include "server/http/request_head.h"

#include <gtest/gtest.h>

namespace lattice::server::http {
namespace {

int StatusOf(const std::string& bytes) {
  const auto parsed = ParseHead(bytes, {});
  if (const auto* bad = std::get_if<BadRequest>(&parsed)) return bad->status;
  return std::holds_alternative<ParsedHead>(parsed) ? 200 : 0;
}

RequestHead HeadOf(const std::string& bytes) {
  const auto parsed = ParseHead(bytes, {});
  EXPECT_TRUE(std::holds_alternative<ParsedHead>(parsed)) << bytes;
  return std::get<ParsedHead>(parsed).head;
}

TEST(RequestHead, IsUnderstood) {
  const std::string text =
      "POST /v1/a%20b?layer=1&head=x%26y HTTP/1.1\r\nHost: localhost:80\r\nContent-Length:  12 \r\n"
      "X-Key: %41bc\r\n\r\nbody";
  const auto parsed = ParseHead(text, {});
  ASSERT_TRUE(std::holds_alternative<ParsedHead>(parsed));
  EXPECT_EQ(std::get<ParsedHead>(parsed).bytes, text.size() - 4);
  const RequestHead& head = std::get<ParsedHead>(parsed).head;
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.path, "/v1/a b");
  EXPECT_EQ(*head.Query("layer"), "1");
  EXPECT_EQ(*head.Query("head"), "x&y");
  EXPECT_EQ(head.content_length, 12);
  EXPECT_EQ(*head.Field("x-key"), "%41bc") << "values are not paths";
  EXPECT_TRUE(head.KeepAlive() && head.HasBody() && !head.chunked);
  EXPECT_FALSE(HeadOf("GET / HTTP/1.0\r\n\r\n").KeepAlive());
  EXPECT_FALSE(HeadOf("GET / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n").KeepAlive());
  EXPECT_TRUE(HeadOf("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n").chunked);
}

// Wherever the bytes are cut, a head is not accepted before its end, and no part of it is refused.
TEST(RequestHead, WaitsForItsEnd) {
  const std::string text = "GET /x?a=b HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n";
  for (size_t cut = 0; cut < text.size(); ++cut) EXPECT_EQ(StatusOf(text.substr(0, cut)), 0) << cut;
  EXPECT_EQ(StatusOf(text), 200);
}

TEST(RequestHead, WhatCouldBeReadInTwoWaysIsRefused) {
  const std::string line = "POST / HTTP/1.1\r\n", host = "Host: a\r\n";
  const auto with = [&](const std::string& fields) { return StatusOf(line + host + fields + "\r\n"); };
  EXPECT_EQ(with(""), 200);
  EXPECT_EQ(with("X: a\nRange: bytes=-\r\n"), 400) << "bare LF";
  EXPECT_EQ(with("X: a\rY: b\r\n"), 400) << "bare CR";
  EXPECT_EQ(with("X: a\r\n b\r\n"), 400) << "continued line";
  EXPECT_EQ(with("Content-Length : 0\r\n"), 400);
  EXPECT_EQ(with("Content-Length: 0\r\nContent-Length: 0\r\n"), 400);
  EXPECT_EQ(with("Content-Length: +1\r\n"), 400);
  EXPECT_EQ(with("Content-Length: 1, 1\r\n"), 400);
  EXPECT_EQ(with("Content-Length:\r\n"), 400);
  EXPECT_EQ(with("Content-Length: 9999999999999999999\r\n"), 400);
  EXPECT_EQ(with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(with("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n"), 400);
  EXPECT_EQ(with("Transfer-Encoding: %63hunked\r\n"), 400);
  EXPECT_EQ(with("Transfer-Encoding: gzip, chunked\r\n"), 400);
  EXPECT_EQ(with("Host: b\r\n"), 400);
  EXPECT_EQ(with("Authorization: Bearer a\r\nAuthorization: Bearer b\r\n"), 400);
  EXPECT_EQ(with("no colon\r\n"), 400);
  EXPECT_EQ(with(": x\r\n"), 400);
  EXPECT_EQ(with("X Y: x\r\n"), 400);
  EXPECT_EQ(with(std::string("X: a\0b\r\n", 8)), 400);
  EXPECT_EQ(with("X: \x7f\r\n"), 400);
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\n\r\n"), 400) << "no Host";
  EXPECT_EQ(StatusOf("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  for (const char* first :
       {"rubbish", "GET /", "GET  / HTTP/1.1", "GET / HTTP/1.1 ", "GET / HTTP/1.2", "GET / http/1.1",
        "G(T / HTTP/1.1", " GET / HTTP/1.1", "GET http://a/ HTTP/1.1", "GET * HTTP/1.1", "GET /\x01 HTTP/1.1",
        "GET /\xff HTTP/1.1", "GET /%4 HTTP/1.1", "GET /%zz HTTP/1.1", "GET /?a=%x HTTP/1.1",
        "GET\t/\tHTTP/1.1", "GET /a#b HTTP/1.1", "", "ABCDEFGHIJKLMNOPQ / HTTP/1.1"})
    EXPECT_EQ(StatusOf(std::string(first) + "\r\n" + host + "\r\n"), 400) << first;
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\nHost: a\n"), 400) << "at once, not when the time is over";
}

TEST(RequestHead, IsBounded) {
  const std::string begin = "GET / HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(StatusOf(begin + "X: " + std::string(17000, 'x')), 431) << "before its end has come";
  std::string many = begin;
  for (int i = 0; i < 101; ++i) many += "X: y\r\n";
  EXPECT_EQ(StatusOf(many + "\r\n"), 431);
  EXPECT_EQ(StatusOf("GET /" + std::string(600, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n"), 414);
  EXPECT_EQ(StatusOf("GET /?" + std::string(3000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n"), 414);
}

}  // namespace
}  // namespace lattice::server::http
