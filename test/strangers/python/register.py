"""Registers keys with Python's gRPC and the classes that protoc makes from proto/kt_service.proto.

The only argument is the server's address. Each line of standard input is a JSON object {userID, deviceID, publicKey},
ids as decimal strings, and optionally {token}; each line of standard output is the answer: {index, vrfHash}, the index
as a decimal string, or {code, details} of the refusal.
"""

import json
import sys

import grpc

import kt_service_pb2
import kt_service_pb2_grpc


def register(stub, line):
    asked = json.loads(line)
    request = kt_service_pb2.RegisterRequest(
        userID=int(asked["userID"]),
        deviceID=int(asked["deviceID"]),
        publicKey=asked["publicKey"],
    )
    metadata = [("authorization", f"Bearer {asked['token']}")] if "token" in asked else []
    try:
        answer = stub.Register(request, timeout=10, metadata=metadata)
        return {"index": str(answer.index), "vrfHash": answer.vrfHash}
    except grpc.RpcError as error:
        return {"code": error.code().name, "details": error.details()}


def main():
    with grpc.insecure_channel(sys.argv[1]) as channel:
        stub = kt_service_pb2_grpc.KTServiceStub(channel)
        for line in sys.stdin:
            print(json.dumps(register(stub, line)))


main()
