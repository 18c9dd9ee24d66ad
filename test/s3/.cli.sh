export AWS_ENDPOINT_URL_S3=http://127.0.0.1:7480 AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=AKTEST AWS_SECRET_ACCESS_KEY=SKTEST
time node dist/bundle/main.js scan s3://$1/t --s3-force-path-style --stats --format csv | wc -l
node dist/bundle/main.js ls s3://$1/t --s3-force-path-style | head -5
node dist/bundle/main.js check s3://$1/t --s3-force-path-style | head -c 300
node dist/bundle/main.js ls s3://$1/nope --s3-force-path-style; echo $?
node dist/bundle/main.js ls s3://nobucket-x/nope --s3-force-path-style; echo $?
AWS_SECRET_ACCESS_KEY=x node dist/bundle/main.js ls s3://$1/t --s3-force-path-style; echo $?
AWS_ACCESS_KEY_ID=AKOTHER AWS_SECRET_ACCESS_KEY=SKOTHER node dist/bundle/main.js ls s3://$1/t --s3-force-path-style; echo $?
AWS_EC2_METADATA_DISABLED=true AWS_ACCESS_KEY_ID= AWS_SECRET_ACCESS_KEY= node dist/bundle/main.js ls s3://$1/t --s3-force-path-style; echo $?
node dist/bundle/main.js ls s3://$1/t --s3-force-path-style --s3-anonymous; echo $?
node dist/bundle/main.js ls s3://$1/t --s3-force-path-style --s3-endpoint http://127.0.0.1:1; echo $?
