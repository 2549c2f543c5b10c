"""Streams behind HTTP: a service with a live page, metrics for Prometheus and alarms.

`setpoint serve` starts it. `app.Service` is the ASGI application, `work.Worker` the one thread
that writes, `api` what is sent and answered, `watch` what others see of it.
"""

__all__: list[str] = []
