# docker build -t placer . && docker run --rm -v "$PWD:/data" placer topology list
FROM python:3.13 AS build
COPY . /src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /src

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir /wheels/*.whl && useradd --uid 1000 placer
USER placer
WORKDIR /data
ENTRYPOINT ["placer"]
